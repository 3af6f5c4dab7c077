import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { z } from 'zod';

const errand = z.object({ urls: z.array(z.url()), authorization: z.string(), count: z.number() });
const latencies = z.array(z.array(z.number()));

/** How many requests are sent to one address before the next address, so that noise affects all addresses equally. */
const BATCH = 10;

/**
 * Sends `count` GETs to each address over one connection, one after another. Resolves, per address, to the milliseconds
 * until the last byte of each answer. The client has its own thread, so that its garbage collection delays no server.
 */
export async function latenciesOf(given: z.input<typeof errand>): Promise<number[][]> {
  const client = new Worker(new URL(import.meta.url), { workerData: given });
  const [answer] = await once(client, 'message');
  return latencies.parse(answer);
}

async function main(): Promise<void> {
  const { urls, authorization, count } = errand.parse(workerData);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const times: number[][] = urls.map(() => []);
  for (let done = 0; done < count; done += BATCH) {
    for (const [index, url] of urls.entries()) {
      for (let round = 0; round < BATCH; round += 1) {
        times[index]?.push(await timed(url, { agent, headers: { authorization } }));
      }
    }
  }
  agent.destroy();
  parentPort?.postMessage(times);
}

async function timed(url: string, options: Parameters<typeof get>[1]): Promise<number> {
  const start = performance.now();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  get(url, options, (response) => {
    if (response.statusCode !== 200) reject(new Error(`${url} answered ${response.statusCode}`));
    response.once('end', resolve).resume();
  }).once('error', reject);
  await promise;
  return performance.now() - start;
}

if (!isMainThread) await main();
