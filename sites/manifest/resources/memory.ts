/** `512m` or `1g`, as the manifest's schema allows, in bytes: `m` is MiB, `g` is GiB. */
export function memoryBytes(memory: string): number {
  return Number.parseInt(memory, 10) * (memory.endsWith('g') ? 2 ** 30 : 2 ** 20);
}
