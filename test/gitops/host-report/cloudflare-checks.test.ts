import { afterEach, expect, test } from 'vitest';
import { checkEdgeKv, checkToken, checkZone } from '../../../gitops/host-report/cloudflare-checks.ts';
import { KV_NAMESPACES } from '../../../plugins/document.ts';
import { ensureNamespace, openState } from '../../../sites/local/cloudflare/api/state.ts';
import { findingOf } from '../../support/checks/findings.ts';
import {
  EMULATOR_SCRIPT,
  EMULATOR_TOKEN,
  EMULATOR_ZONE,
  startEmulator,
  type TestEmulator,
} from '../../support/cloudflare/emulator.ts';
import { silentServer } from '../../support/silent.ts';

let cloudflare: TestEmulator;
afterEach(() => cloudflare.close());

async function start(options: Parameters<typeof startEmulator>[0] = {}) {
  cloudflare = await startEmulator(options);
  return account();
}
const account = (options: Parameters<TestEmulator['client']>[0] = {}) => ({
  client: cloudflare.client(options),
  zoneId: cloudflare.zone.id,
  script: EMULATOR_SCRIPT,
});

test('the zone of EDGE_DOMAIN, and a name under it, pass', async () => {
  const own = await start();
  for (const domain of [EMULATOR_ZONE, `eu.${EMULATOR_ZONE}`]) {
    expect(await checkZone(own, domain)).toMatchObject({
      name: 'cloudflare_zone',
      status: 'passed',
      fix: null,
    });
  }
});

test('an EDGE_DOMAIN outside the zone is a finding until it is set to a name in the zone', async () => {
  const own = await start();
  expect(findingOf(await checkZone(own, `not${EMULATOR_ZONE}`), /is not in example\.net/)).toBe('other');
  expect(await checkZone(own, EMULATOR_ZONE)).toMatchObject({ status: 'passed' });
});

test('a revoked token is a finding until there is a new one', async () => {
  await start();
  const revoked = account({ token: 'revoked' });
  expect(findingOf(await checkZone(revoked, EMULATOR_ZONE), /CLOUDFLARE_API_TOKEN is refused/)).toBe('token');
  expect(findingOf(await checkToken(revoked, { writesDns: true }), /lacks Zone, Zone: Read/)).toBe('lacks');
  const renewed = account({ token: EMULATOR_TOKEN });
  expect(await checkZone(renewed, EMULATOR_ZONE)).toMatchObject({ status: 'passed' });
  expect(await checkToken(renewed, { writesDns: true })).toMatchObject({ status: 'passed' });
});

test.each(['0123456789abcdef0123456789abcdef', 'bogus'])(
  'the bogus zone %s is a finding until the zone’s id is set',
  async (zoneId) => {
    const own = await start({ checked: false });
    expect(findingOf(await checkZone({ ...own, zoneId }, EMULATOR_ZONE), /CLOUDFLARE_ZONE_ID/)).toBe(
      'unknown',
    );
    expect(await checkZone(own, EMULATOR_ZONE)).toMatchObject({ status: 'passed' });
  },
);

test.each([
  ['DNS', 'Zone, DNS: Edit'],
  ['Workers Routes', 'Zone, Workers Routes: Edit'],
  ['Workers KV Storage', 'Account, Workers KV Storage: Edit'],
  ['Workers Scripts', 'Account, Workers Scripts: Read'],
])('a token without %s is a finding that names %s, until the token has it', async (group, permission) => {
  const lacking = await start({ lacking: [group] });
  expect(
    findingOf(await checkToken(lacking, { writesDns: true }), `^CLOUDFLARE_API_TOKEN lacks ${permission}$`),
  ).toBe('lacks');
  await cloudflare.close();
  expect(await checkToken(await start(), { writesDns: true })).toMatchObject({ status: 'passed' });
});

test('a token for DNS elsewhere needs no permission for DNS', async () => {
  const lacking = await start({ lacking: ['DNS'] });
  expect(await checkToken(lacking, { writesDns: false })).toMatchObject({ status: 'passed' });
});

test('without a namespace, the permission to write to one is not checked', async () => {
  const own = await start();
  expect(await checkToken({ ...own, script: 'other' }, { writesDns: true })).toMatchObject({
    status: 'skipped',
    detail: expect.stringMatching(
      /^Account, Workers KV Storage: Edit: .*other-ROUTES.*it has Zone, Zone: Read; /,
    ),
  });
});

test('the check of the token changes nothing', async () => {
  const own = await start();
  const { signal } = new AbortController();
  const id = await own.client.createRoute(
    own.zoneId,
    { pattern: 'a.example.net/*', script: EMULATOR_SCRIPT },
    signal,
  );
  await checkToken(own, { writesDns: true });
  expect(await own.client.routes(own.zoneId, signal)).toMatchObject([{ id }]);
});

test('missing namespaces are a finding until they are made', async () => {
  const db = openState(':memory:');
  const own = await start({ db });
  const other = { ...own, script: 'other' };
  expect(findingOf(await checkEdgeKv(other), /no KV namespace other-ROUTES, other-SITE_REGISTRY/)).toBe(
    'missing',
  );
  for (const name of KV_NAMESPACES) ensureNamespace(db, `other-${name}`);
  expect(await checkEdgeKv(other)).toMatchObject({ name: 'edge_kv', status: 'passed' });
});

test('an API that doesn’t answer is one finding; what depends on it is not checked', async () => {
  await start();
  const silent = await silentServer();
  const away = account({ url: silent.url });
  const [zone, token, kv] = await Promise.all([
    checkZone(away, EMULATOR_ZONE),
    checkToken(away, { writesDns: true }),
    checkEdgeKv(away),
  ]);
  expect(findingOf(zone, /^CLOUDFLARE_API_URL/)).toBe('silent');
  expect([token, kv]).toMatchObject([
    { status: 'skipped', fix: null },
    { status: 'skipped', fix: null },
  ]);
  await silent.close();
});
