/** Above this number of remembered writes, those that no longer matter are forgotten. */
const SWEEP_AT = 10_000;

/** Whether a key may be written now: not within `everyMs` of its last write. The answer `true` counts as a write. */
export function writeRate(everyMs: number, now: () => Date): (key: string) => boolean {
  const written = new Map<string, number>();
  return (key) => {
    const time = now().getTime();
    const last = written.get(key);
    if (last !== undefined && time - last >= 0 && time - last < everyMs) return false;
    if (written.size >= SWEEP_AT) {
      for (const [other, at] of written) if (time - at >= everyMs) written.delete(other);
    }
    written.set(key, time);
    return true;
  };
}
