import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CloudflareRefusal } from '../../../gitops/clients/cloudflare-errors.ts';
import { checkEdgePart, edgePathOf } from '../../../gitops/host-report/edge-path.ts';
import {
  EMULATOR_SCRIPT,
  EMULATOR_ZONE,
  startEmulator,
  type TestEmulator,
} from '../../support/cloudflare/emulator.ts';
import { silentServer } from '../../support/silent.ts';

const HOST = `acme-shop.${EMULATOR_ZONE}`;
const OTHER = 'another-worker';

let cloudflare: TestEmulator;
beforeEach(async () => {
  cloudflare = await startEmulator({ scripts: [EMULATOR_SCRIPT, OTHER] });
});
afterEach(() => cloudflare.close());

const deps = () => ({ client: cloudflare.client(), zoneId: cloudflare.zone.id, script: EMULATOR_SCRIPT });
const route = (pattern: string, script?: string) =>
  cloudflare.call('POST', `/zones/${cloudflare.zone.id}/workers/routes`, { pattern, script });

describe('a Workers route of others', () => {
  test.each<[pattern: string, own: string, script: string | undefined, RegExp]>([
    [
      `${HOST}/g/*`,
      `${HOST}/*`,
      undefined,
      /^the Workers route \S+\/g\/\* leads requests of acme-shop\S+ past/,
    ],
    [`${HOST}/g/*`, `*.${EMULATOR_ZONE}/*`, OTHER, /to the worker another-worker$/],
    [`${HOST}/g/collect`, `${HOST}/*`, undefined, /past all workers/],
    [`${HOST}/*`, `*.${EMULATOR_ZONE}/*`, undefined, /past all workers/],
    [`https://${HOST}/*`, `${HOST}/*`, undefined, /https:/],
    [`*.${EMULATOR_ZONE}/g/*`, `${HOST}/*`, OTHER, /another-worker/],
    [`*shop.${EMULATOR_ZONE}/*`, `*.${EMULATOR_ZONE}/*`, OTHER, /another-worker/],
  ])('%s beside %s fails the check, and is named', async (pattern, own, script, detail) => {
    await route(own, EMULATOR_SCRIPT);
    await route(pattern, script);
    const check = await checkEdgePart(deps(), ['shop.example.com', HOST]);
    expect(check).toMatchObject({
      name: 'edge_routes',
      status: 'failed',
      detail: expect.stringMatching(detail),
    });
    expect(check.detail).toContain(pattern);
    expect(check.fix).toMatch(/^Delete the named route/);
    expect(await edgePathOf(deps(), HOST, 3_000)).toEqual({ problem: check.detail, fix: check.fix });
  });

  test.each<[pattern: string, own: string, script: string | undefined]>([
    [`*.${EMULATOR_ZONE}/*`, `${HOST}/*`, OTHER],
    [`*${EMULATOR_ZONE}/*`, `*.${EMULATOR_ZONE}/*`, undefined],
    [`www.${EMULATOR_ZONE}/*`, `*.${EMULATOR_ZONE}/*`, OTHER],
    [`${HOST}/g/*`, `${HOST}/*`, EMULATOR_SCRIPT],
    [HOST, `${HOST}/*`, undefined],
  ])('%s beside %s is no problem', async (pattern, own, script) => {
    await route(own, EMULATOR_SCRIPT);
    await route(pattern, script);
    expect(await checkEdgePart(deps(), [HOST])).toMatchObject({ status: 'passed', fix: null });
    expect(await edgePathOf(deps(), HOST, 3_000)).toEqual({ problem: null, fix: null });
  });
});

test('Google’s tag gateway on the zone fails the check while it is switched on', async () => {
  const path = `/zones/${cloudflare.zone.id}/settings/google-tag-gateway/config`;
  const config = {
    endpoint: '/metrics',
    measurementId: 'GTM-ABC1234',
    hideOriginalIp: false,
    setUpTag: true,
  };
  await cloudflare.call('PUT', path, { ...config, enabled: true });
  expect(await checkEdgePart(deps(), [HOST])).toMatchObject({
    status: 'failed',
    detail: expect.stringMatching(/tag gateway is switched on for the zone \(\/metrics, GTM-ABC1234\)/),
    fix: expect.stringMatching(/^Switch it off/),
  });
  await cloudflare.call('PUT', path, { ...config, enabled: false });
  expect(await checkEdgePart(deps(), [HOST])).toMatchObject({ status: 'passed' });
});

test('a token that may not read the tag gateway is said, and the routes are checked', async () => {
  const client = {
    ...cloudflare.client(),
    // The emulated token has all permissions.
    tagGateway: async () => {
      const error = { code: 10000, message: 'Authentication error' };
      throw new CloudflareRefusal('zones', 403, [error], 'unauthorized');
    },
  };
  expect(await checkEdgePart({ ...deps(), client }, [HOST])).toMatchObject({
    status: 'passed',
    detail: expect.stringContaining('Zone Settings: Read'),
  });
});

test('an API that doesn’t answer is no problem of the site, and fails the host’s own check', async () => {
  const silent = await silentServer();
  const away = { ...deps(), client: cloudflare.client({ url: silent.url, timeoutMs: 200 }) };
  expect(await edgePathOf(away, HOST, 3_000)).toBeUndefined();
  expect(await checkEdgePart(away, [HOST])).toMatchObject({ status: 'failed' });
  await silent.close();
});
