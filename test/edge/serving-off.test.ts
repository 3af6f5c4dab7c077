import { afterAll, beforeAll, expect, test } from 'vitest';
import { HOP_SECRET, type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';

let stage: Stage;
let site: StagedSite;
let served: StagedSite;
beforeAll(async () => {
  stage = await startStage();
  site = await stage.site({ off: true });
  served = await stage.site({});
});
afterAll(() => stage.close());

const paths = ({ loader, domains }: StagedSite) => [
  `/l/${loader}.js`,
  `/c/${domains[0]?.token}.js`,
  '/bait/gtm.js',
  '/g/collect?v=2',
  '/no-such-path',
];

test('the edge answers nothing of a site whose serving is off', async () => {
  for (const path of paths(site)) {
    const { status, text, headers } = await stage.send(site.host, path);
    expect([path, status, JSON.parse(text).code]).toEqual([path, 403, 'serving_off']);
    expect(headers['cache-control']).toBe('no-store');
  }
  const boot = await stage.send(site.host, '/boot', {
    method: 'POST',
    headers: { origin: `https://${site.domains[0]?.domain}` },
    body: JSON.stringify({ loader: site.loader, url: `https://${site.domains[0]?.domain}/` }),
  });
  expect([boot.status, JSON.parse(boot.text).code]).toEqual([403, 'serving_off']);
});

test('behind our own proxy, too, the edge answers nothing of a site whose serving is off', async () => {
  const hop = { 'x-tagyard-hop-secret': HOP_SECRET, 'x-forwarded-host': `data.${site.domains[0]?.domain}` };
  const { status } = await stage.send(site.host, `/l/${site.loader}.js`, { headers: hop });
  expect(status).toBe(403);
});

test('another site is served', async () => {
  expect((await stage.send(served.host, `/l/${served.loader}.js`)).status).toBe(200);
});
