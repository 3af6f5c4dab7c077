import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseManifest } from '../../sites/manifest/load.ts';
import { creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
beforeAll(async () => {
  world = await World.open();
  client = await world.client();
});
afterAll(() => world.close());

const defaults = {
  consent: 'opt_out',
  consentMode: 'advanced',
  fallback: 'vendor',
  regions: [],
  consentMaxDays: 395,
};

async function create(domain: string, extra: object = {}) {
  const body = creation(client, domain, extra);
  const answer = await world.call('POST', '/server-containers', { as: 'owner', body });
  expect(answer.status, JSON.stringify(answer.body)).toBe(202);
  return answer.body;
}

const change = (id: string, body: object) =>
  world.call('PATCH', `/server-containers/${id}`, { as: 'admin', body });

test('a container without rules of consent has the defaults, and its file names none of them', async () => {
  const container = await create('plain.example');
  expect(container).toMatchObject(defaults);
  expect(container.snippet).toContain('setTimeout(t.direct');
  expect(await world.file(container.siteId)).not.toMatch(/^(?:consent|fallback|regions)/m);
});

test('rules are set at the creation and changed later; what isn’t named stays, regions are replaced', async () => {
  const container = await create('strict.example', { consent: 'required', consentMode: 'basic' });
  expect(container).toMatchObject({ ...defaults, consent: 'required', consentMode: 'basic' });
  // No page may ask the vendor before the loader allows it.
  expect(container.snippet).not.toContain('setTimeout(t.direct');
  expect(container.snippet).toContain('t.tried=true');

  const regions = [{ places: ['US', 'US-CA'], consent: 'opt_out' }];
  const changed = await change(container.id, { regions, consentMaxDays: 180 });
  expect(changed).toMatchObject({
    status: 200,
    body: { consent: 'required', consentMode: 'basic', regions, consentMaxDays: 180 },
  });
  const parsed = parseManifest((await world.file(container.siteId)) ?? '', `${container.siteId}.yaml`);
  expect(parsed).toMatchObject({
    ok: true,
    manifest: { consent: 'required', consentMode: 'basic', fallback: 'vendor', regions, consentMaxDays: 180 },
  });

  const { body } = await change(container.id, { consent: 'opt_out', consentMode: 'advanced', regions: [] });
  expect(body).toMatchObject({ ...defaults, consentMaxDays: 180 });
  expect(body.snippet).toContain('setTimeout(t.direct');
});

test.each([
  [{ consent: 'maybe' }, 'consent'],
  [{ consentMode: 'none' }, 'consentMode'],
  [{ fallback: 'edge' }, 'fallback'],
  [{ regions: [{ places: ['Germany'] }] }, 'regions.0.places.0'],
  [{ regions: [{ places: ['DE'] }, { places: ['DE'] }] }, 'regions.1.places.0'],
  [{ consentMaxDays: 0 }, 'consentMaxDays'],
])('%j is refused with its path', async (body, path) => {
  const container = await create(`refused${path.replaceAll('.', '-').toLowerCase()}.example`);
  const answer = await change(container.id, body);
  expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request', errors: [{ path }] } });
});
