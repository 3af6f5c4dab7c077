import { type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';
import type { Suite } from './bench.ts';

const KV_MS = 200;
const VISITORS = 600;
/** Requests under way at once. */
const AT_ONCE = 10;
/** After this many requests, all documents become stale, as after a minute with one request a second. */
const FRESH_FOR = 60;
const STORES = ['ROUTES', 'SITE_REGISTRY', 'LOADER_TOKEN_MAP', 'EDGE_CONFIG', 'COOKIES'] as const;

/**
 * How long a known visitor's page waits for its bootstrap while every call of KV takes 200 ms. The bootstrap reads KV
 * once and writes a changed cookie; the site's documents are in memory. The target of the 99th percentile is 260 ms.
 */
export const edgeSlow: Suite = async (bench) => {
  const stage = await startStage();
  try {
    const site = await stage.site({ features: { cookie_restoration: true } });
    const { id } = (await stage.boot(site, { cookies: { _ga: '1' } })).json.profile;
    for (const store of STORES) await stage.fault(store, KV_MS);
    const took = (await measure(stage, site, id)).toSorted((a, b) => a - b);
    for (const [name, part] of [
      ['p50', 0.5],
      ['p99 (aim 260)', 0.99],
    ] as const) {
      const value = took[Math.floor(took.length * part)] ?? Number.NaN;
      await bench(`edge: /boot with KV at ${KV_MS} ms, ${name}`, { unit: 'ms', run: () => value });
    }
  } finally {
    await stage.close();
  }
};

async function measure(stage: Stage, site: StagedSite, fpid: string): Promise<number[]> {
  const took: number[] = [];
  for (let sent = 0; sent < VISITORS; sent += AT_ONCE) {
    if (sent % FRESH_FOR === 0) await stage.forward(60_100);
    const one = async (_value: unknown, index: number) => {
      const began = performance.now();
      const { status } = await stage.boot(site, { fpid, cookies: { _ga: `${sent + index}` } });
      if (status !== 200) throw new Error(`the bootstrap answered ${status}`);
      took.push(performance.now() - began);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
  }
  return took;
}
