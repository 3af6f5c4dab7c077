import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { request } from 'undici';

const SERVER = fileURLToPath(new URL('control-server.ts', import.meta.url));
/** An idle server that needs this long shows that the machine stalls. */
const STALL_MS = 600;

/**
 * An idle HTTP server in a process of its own. If it is slow at the same moment as a part, the machine is the cause;
 * otherwise the part is.
 */
export async function startControl() {
  const child = fork(SERVER);
  const [url]: string[] = await once(child, 'message');

  /** Does the work, and returns whether the machine stalled during it. */
  async function beside<T>(
    work: () => Promise<T>,
  ): Promise<{ readonly value: T; readonly hasStalled: boolean }> {
    let isOver = false;
    let longestMs = 0;
    const probing = (async () => {
      while (!isOver) {
        const started = performance.now();
        await request(url ?? '').then(({ body }) => body.dump());
        longestMs = Math.max(longestMs, performance.now() - started);
      }
    })();
    const value = await work().finally(() => {
      isOver = true;
    });
    // A probe that began in time counts, also if it ends later.
    await probing;
    return { value, hasStalled: longestMs >= STALL_MS };
  }

  return {
    beside,
    async [Symbol.asyncDispose]() {
      const gone = once(child, 'exit');
      child.disconnect();
      await gone;
    },
  };
}
