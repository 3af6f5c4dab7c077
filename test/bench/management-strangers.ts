import { randomUUID } from 'node:crypto';
import { request } from 'undici';
import { World } from '../support/management/world.ts';
import type { Bench, Suite } from './bench.ts';

const READS = 500;
/** How many requests the stranger has open at any time. */
const AT_ONCE = 4;

/** What a login without any membership sends, and how it is named in a figure. */
const SENT: Readonly<Record<string, () => readonly [path: string, body: string]>> = {
  'exports of 4 MiB': () => [
    `/server-containers/${randomUUID()}/checklist/export`,
    JSON.stringify({
      exportFormatVersion: 2,
      containerVersion: { tag: Array(40_000).fill({ type: 'html', name: 'x'.repeat(60) }) },
    }),
  ],
  'bodies of 16,000 unknown keys': () => [
    '/server-containers',
    JSON.stringify(Object.fromEntries(Array.from({ length: 16_000 }, (_, key) => [`k${key}`, 1]))),
  ],
};

/** What one caller's requests cost another client. */
export const managementStrangers: Suite = async (bench) => {
  const world = await World.open({ logLevel: 'silent' });
  try {
    await world.client();
    const url = (await world.management?.app.listen({ host: '127.0.0.1', port: 0 })) ?? '';
    const owner = { authorization: `Bearer ${await world.issuer.token('owner')}` };
    const stranger = {
      authorization: `Bearer ${await world.issuer.token('stranger')}`,
      'content-type': 'application/json',
    };
    const read = () => timed(`${url}/clients`, owner);
    await reads(read);
    for (const [name, make] of Object.entries(SENT)) await beside(bench, { name, make, url, stranger, read });
  } finally {
    await world.close();
  }
};

interface Beside {
  readonly name: string;
  readonly make: (typeof SENT)[string];
  readonly url: string;
  readonly stranger: Readonly<Record<string, string>>;
  readonly read: () => Promise<number>;
}

async function beside(bench: Bench, { name, make, url, stranger, read }: Beside): Promise<void> {
  const quiet = await reads(read);
  const [path, body] = make();
  const ended = new AbortController();
  let sent = 0;
  const send = async () => {
    while (!ended.signal.aborted) {
      // The API may end the connection of a body that it doesn't read.
      await request(`${url}${path}`, { method: 'POST', headers: stranger, body })
        .then((answer) => answer.body.dump())
        .catch(() => undefined);
      sent += 1;
    }
  };
  const sending = Array.from({ length: AT_ONCE }, send);
  const busy = await reads(read);
  ended.abort();
  await Promise.all(sending);
  await bench(`GET /clients beside a stranger’s ${name}: p99, relative to that without (aim 2)`, {
    unit: '×',
    run: () => p99(busy) / p99(quiet),
  });
  await bench('  control: p99 without', { unit: 'ms', run: () => p99(quiet) });
  await bench('  requests that the stranger sent', { unit: '', run: () => sent });
}

async function reads(read: () => Promise<number>): Promise<number[]> {
  const times: number[] = [];
  while (times.length < READS) times.push(await read());
  return times;
}

async function timed(url: string, headers: Readonly<Record<string, string>>): Promise<number> {
  const start = performance.now();
  const { statusCode, body } = await request(url, { headers });
  await body.dump();
  if (statusCode !== 200) throw new Error(`GET /clients answered ${statusCode}`);
  return performance.now() - start;
}

function p99(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? Number.NaN;
}
