import { Home } from '../../gitops/cli/instance/home.ts';
import { cloudflareObjects } from '../../management/raw-objects/cloudflare.ts';
import { eventually } from '../support/eventually.ts';
import type { Instance } from '../support/instance.ts';
import { batchOf, ndjson, recordAt } from '../support/traffic/records.ts';

const MINUTE = 60_000;
const HOURS = 24;
const READY_MS = 120_000;

/** Containers beside the demo's: name, domain, and requests a minute at the busiest time of the day. */
const CONTAINERS = [
  ['Nordlicht Outdoor', 'nordlicht-outdoor.example', 5],
  ['Café Linden', 'cafe-linden.example', 2],
  ['Werkzeug Haus', 'werkzeug-haus.example', 3],
] as const;
const DEMO_REQUESTS = 8;

/** Makes containers for the demo's client, and records of a day for them and for the demo's container. */
export async function makeDemoData({ run }: Instance, home: string): Promise<void> {
  const call = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(`${run.management.url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${run.demo.token}`, 'content-type': 'application/json' },
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
    return JSON.parse(text);
  };
  const rates: [id: string, rate: number][] = [[run.demo.container, DEMO_REQUESTS]];
  for (const [name, domain, rate] of CONTAINERS) {
    const { id } = await call('/server-containers', {
      method: 'POST',
      body: JSON.stringify({
        clientId: run.demo.clientId,
        name,
        domains: [domain],
        webTagIds: { [domain]: 'GTM-ABC1234' },
        containerConfigB64: Buffer.from('id=GTM-SRV0001&env=1&auth=an-example-only').toString('base64'),
      }),
    });
    rates.push([id, rate]);
  }
  for (const [id] of rates) {
    await eventually(
      async () => {
        const { status } = await call(`/server-containers/${id}`);
        if (!['active', 'verified', 'verification_failed'].includes(status))
          throw new Error(`${id}: ${status}`);
      },
      { timeoutMs: READY_MS, intervalMs: 500 },
    );
  }
  const { cloudflareToken: token } = await new Home(home).instance();
  const objects = cloudflareObjects({
    ...run.cloudflare,
    token,
    bucket: 'tagyard-raw-logs',
    rate: 1e6,
    burst: 1e6,
  });
  const records = rates
    .flatMap(([id, rate]) => dayOf(id, rate))
    .toSorted((a, b) => (a.time < b.time ? -1 : 1));
  for (const [hour, of] of Map.groupBy(records, ({ time }) => time.slice(0, 13))) {
    const key = `raw/dt=${hour.slice(0, 10)}/${hour}0000.000Z-${crypto.randomUUID()}.ndjson`;
    await objects.write(key, Buffer.from(ndjson(batchOf(of))));
  }
}

/** Requests of the last day: most in the early afternoon, few at night, some slow, few failed. The seed is fixed. */
function dayOf(container: string, rate: number): { readonly time: string }[] {
  const now = Date.now();
  let seed = rate;
  const random = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  return Array.from({ length: HOURS * 60 }, (_, index) => now - (index + 1) * MINUTE).flatMap((minute) => {
    const hour = new Date(minute).getUTCHours() + new Date(minute).getUTCMinutes() / 60;
    const busy = 0.15 + 0.85 * Math.max(0, Math.sin(((hour - 5) / 18) * Math.PI)) ** 1.5;
    return Array.from({ length: Math.round(rate * busy * (0.6 + 0.8 * random())) }, () => {
      const time = new Date(minute + Math.floor(random() * MINUTE)).toISOString();
      const fields = {
        container,
        site: container,
        ...(random() < 0.004 ? { status: 502, error: 'upstream_failed' } : { status: 200 }),
        duration: Math.round(4 + 20 * random() ** 4 + (random() < 0.02 ? 180 : 0)),
        cache: random() < 0.7 ? 'hit' : 'miss',
        consent: random() < 0.78 ? 'all' : 'none',
        route: random() < 0.6 ? '/g/collect' : '/c/:token',
      };
      return { ...recordAt(time, fields), time };
    });
  });
}
