import { Agent, request } from 'undici';
import { z } from 'zod';
import type { Run } from '../../gitops/cli/instance/run-schema.ts';
import { eventually } from '../support/eventually.ts';
import { startInstance, temporaryHome } from '../support/instance.ts';
import type { Suite } from './bench.ts';

const PER_SECOND = 1_500;
const SECONDS = 10;
/** Hits are sent in groups, as timers aren't exact. */
const GROUP_MS = 10;
const POLL = { timeoutMs: 120_000, intervalMs: 500 };

/** A campaign: hits of one site at a constant rate, through the edge, the proxy and the tag server. */
export const hits: Suite = async (bench) => {
  using home = temporaryHome();
  await using instance = await startInstance(home.path, { TAGYARD_CONTAINERS: 'process' });
  const { run } = instance;
  const sent = await send(run);
  const all = PER_SECOND * SECONDS;
  await bench(`hits sent a second, of ${PER_SECOND}`, { unit: '1/s', run: () => all / sent.seconds });
  await bench('hits answered', { unit: '%', run: () => (100 * sent.answered) / all });
  for (const [status, count] of sent.statuses) {
    await bench(`hits answered with ${status}`, { unit: '', run: () => count });
  }
  await bench('p50', { unit: 'ms', run: () => sent.latency(0.5) });
  await bench('p99', { unit: 'ms', run: () => sent.latency(0.99) });
  const refused = [...sent.statuses].reduce((sum, [status, count]) => sum + (status >= 400 ? count : 0), 0);
  const counted = await eventually(async () => {
    const sums = await trafficOf(run);
    if (sums.requests < sent.answered) throw new Error(`${sums.requests} of ${sent.answered} are counted`);
    return sums;
  }, POLL);
  await bench('hits counted', { unit: '', run: () => counted.requests });
  await bench(`hits said to be lost, of ${refused} refused`, { unit: '', run: () => counted.lostHits });
};

const container = z.object({ hostnames: z.object({ edge: z.string() }) });

async function send({ edge, demo, management }: Run) {
  const headers = { authorization: `Bearer ${demo.token}` };
  const found = await request(`${management.url}/server-containers/${demo.container}`, { headers });
  const { hostnames } = container.parse(await found.body.json());
  const dispatcher = new Agent({ connections: 200 });
  const statuses = new Map<number, number>();
  const times: number[] = [];
  const pending: Promise<void>[] = [];
  const started = performance.now();
  const hit = async () => {
    const at = performance.now();
    const answer = await request(`${edge.url}/g/collect?v=2&tid=G-BENCH`, {
      method: 'POST',
      dispatcher,
      headers: { host: hostnames.edge, 'content-type': 'text/plain' },
      body: 'en=page_view',
    }).catch(() => null);
    if (answer === null) return;
    await answer.body.dump();
    times.push(performance.now() - at);
    statuses.set(answer.statusCode, (statuses.get(answer.statusCode) ?? 0) + 1);
  };
  const { promise: allSent, resolve } = Promise.withResolvers<void>();
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - started) * PER_SECOND) / 1_000);
    while (pending.length < Math.min(due, PER_SECOND * SECONDS)) pending.push(hit());
    if (pending.length === PER_SECOND * SECONDS) resolve();
  }, GROUP_MS);
  await allSent;
  clearInterval(timer);
  const seconds = (performance.now() - started) / 1_000;
  await Promise.all(pending);
  await dispatcher.close();
  times.sort((a, b) => a - b);
  const latency = (part: number) => times[Math.floor(part * times.length)] ?? Number.NaN;
  return { seconds, answered: times.length, statuses, latency };
}

const traffic = z.object({
  points: z.array(z.object({ routes: z.record(z.string(), z.number()), lostHits: z.number() })),
});

async function trafficOf({ management, demo }: Run) {
  const headers = { authorization: `Bearer ${demo.token}` };
  const answer = await request(`${management.url}/clients/${demo.clientId}/traffic?step=60`, { headers });
  if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${await answer.body.text()}`);
  const { points } = traffic.parse(await answer.body.json());
  return {
    requests: points.reduce((sum, { routes }) => sum + (routes['/g/collect'] ?? 0), 0),
    lostHits: points.reduce((sum, { lostHits }) => sum + lostHits, 0),
  };
}
