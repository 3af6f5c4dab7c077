import { afterAll, beforeAll, expect, test } from 'vitest';
import { forwarderToken, prefixed, stated } from '../support/edge/forwarder.ts';
import { HOP_SECRET, type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';

const TOKEN = forwarderToken('acme');

let stage: Stage;
let site: StagedSite;
let domain: string;
beforeAll(async () => {
  stage = await startStage();
  site = await stage.site({ domains: [{ unproven: true }] });
  domain = site.domains[0]?.domain ?? '';
});
afterAll(() => stage.close());

const loader = (headers: Record<string, string>, path = '') =>
  stage.send(site.host, `${path}/l/${site.loader}.js`, { headers });

test('a host of an unproven domain is not a first-party host, even behind our own proxy', async () => {
  const hop = { 'x-tagyard-hop-secret': HOP_SECRET, 'x-forwarded-host': `data.${domain}` };
  const { status, text } = await loader(hop);
  expect(status).toBe(200);
  expect(text).toContain(site.host);
  expect(text).not.toContain(`data.${domain}`);
});

test('pages of an unproven domain may use the edge hostname', async () => {
  const answer = await stage.send(site.host, '/boot', {
    method: 'POST',
    headers: { origin: `https://www.${domain}` },
    body: JSON.stringify({ loader: site.loader, url: `https://www.${domain}/` }),
  });
  expect(answer.status).toBe(200);
  expect(answer.headers['access-control-allow-origin']).toBe(`https://www.${domain}`);
  // The cookie belongs to the edge hostname; nothing is set for the unproven domain.
  expect(String(answer.headers['set-cookie'])).not.toContain(`Domain=${domain}`);
});

test('for a proven domain, both the custom domain’s host and the prefix are first-party', async () => {
  const proven = await stage.site({ domains: [{ sameOrigin: prefixed('/m3trics1', TOKEN) }] });
  const name = proven.domains[0]?.domain ?? '';
  const hop = { 'x-tagyard-hop-secret': HOP_SECRET, 'x-forwarded-host': `data.${name}` };
  const answer = await stage.send(proven.host, `/l/${proven.loader}.js`, { headers: hop });
  expect(answer.text).toContain(`data.${name}`);
  const below = await stage.send(proven.host, `/m3trics1/l/${proven.loader}.js`, {
    headers: stated(TOKEN, `www.${name}`),
  });
  expect(below.text).toContain(`www.${name}/m3trics1`);
});
