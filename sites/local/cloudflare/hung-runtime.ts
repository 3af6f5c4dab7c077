import { readFile } from 'node:fs/promises';
import { type Clock, systemClock } from '../../../base/clock.ts';

const PROBE_INTERVAL_MS = 10_000;
/** The front answers at once, but the machine may be busy. */
const PROBE_TIMEOUT_MS = 5_000;

/**
 * Kills a runtime that hangs until the signal: Miniflare starts another one, as after every end. `url`: of the edge, which
 * answers any request.
 */
export async function endHungRuntimes(
  url: URL,
  signal: AbortSignal,
  clock: Pick<Clock, 'sleep'> = systemClock,
): Promise<void> {
  const answers = async () => {
    const probe = fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    // A refused connection is one of a runtime that has ended and is started again.
    return await probe.then(
      () => true,
      (error: Error) => error.name !== 'TimeoutError',
    );
  };
  while (!signal.aborted) {
    await clock.sleep(PROBE_INTERVAL_MS, { signal, ref: false });
    if (signal.aborted || (await answers()) || (await answers()) || signal.aborted) continue;
    process.stderr.write('edge: the runtime doesn’t answer; it is started again\n');
    for (const pid of await runtimes()) process.kill(pid, 'SIGKILL');
  }
}

/** The runtimes that this process has started. */
async function runtimes(): Promise<number[]> {
  const { pid } = process;
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  const names = children.split(' ').map(async (child) => {
    const name = await readFile(`/proc/${child}/comm`, 'utf8').catch(() => '');
    return name === 'workerd\n' ? [Number(child)] : [];
  });
  return (await Promise.all(names)).flat();
}
