import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkEdgePart, edgePathOf } from '../../../gitops/host-report/edge-path.ts';
import { ensureZone } from '../../../sites/local/cloudflare/api/state.ts';
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
const SITE = {
  edge: HOST,
  others: [`acme-shop.origin.${EMULATOR_ZONE}`, `acme-shop.preview.${EMULATOR_ZONE}`, 'data.shop.example'],
};
const route = (pattern: string, script?: string) =>
  cloudflare.call('POST', `/zones/${cloudflare.zone.id}/workers/routes`, { pattern, script });
const customDomain = (hostname: string, service: string) =>
  cloudflare.call('PUT', `/accounts/${cloudflare.account}/workers/domains`, { hostname, service });

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
    const check = await checkEdgePart(deps(), [{ edge: 'shop.example.com', others: [] }, SITE]);
    expect(check).toMatchObject({
      name: 'edge_routes',
      status: 'failed',
      detail: expect.stringMatching(detail),
    });
    expect(check.detail).toContain(pattern);
    expect(check.fix).toMatch(/^Delete the named route/);
    expect(await edgePathOf(deps(), SITE, 3_000)).toEqual({
      problem: check.detail,
      fix: check.fix,
      unread: null,
    });
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
    expect(await checkEdgePart(deps(), [SITE])).toMatchObject({ status: 'passed', fix: null });
    expect(await edgePathOf(deps(), SITE, 3_000)).toEqual({ problem: null, fix: null, unread: null });
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
  expect(await checkEdgePart(deps(), [SITE])).toMatchObject({
    status: 'failed',
    detail: expect.stringMatching(/tag gateway is switched on for the zone \(\/metrics, GTM-ABC1234\)/),
    fix: expect.stringMatching(/^Switch it off/),
  });
  await cloudflare.call('PUT', path, { ...config, enabled: false });
  expect(await checkEdgePart(deps(), [SITE])).toMatchObject({ status: 'passed' });
});

describe('a Workers custom domain', () => {
  test.each<[what: string, hostname: string, own: string | null]>([
    ['the edge hostname, beside a wildcard route', HOST, `*.${EMULATOR_ZONE}/*`],
    ['the edge hostname, beside a route for some paths', HOST, `${HOST}/g/*`],
    ['the edge hostname without a route', HOST, null],
    ['the origin hostname', `acme-shop.origin.${EMULATOR_ZONE}`, `*.${EMULATOR_ZONE}/*`],
    ['the preview hostname', `acme-shop.preview.${EMULATOR_ZONE}`, `*.${EMULATOR_ZONE}/*`],
    ['a first-party host in another zone of the account', 'data.shop.example', `${HOST}/*`],
  ])('of another worker fails the check on %s', async (_what, hostname, own) => {
    ensureZone(cloudflare.db, 'shop.example', new Date('2026-01-01T00:00:00Z'));
    if (own !== null) await route(own, EMULATOR_SCRIPT);
    await customDomain(hostname, OTHER);
    const check = await checkEdgePart(deps(), [SITE]);
    expect(check).toMatchObject({
      name: 'edge_routes',
      status: 'failed',
      detail: expect.stringContaining(
        `the Workers custom domain ${hostname} leads requests of this hostname to the worker ${OTHER}`,
      ),
      fix: expect.stringMatching(/^Delete the named custom domain/),
    });
    expect(await edgePathOf(deps(), SITE, 3_000)).toEqual({
      problem: check.detail,
      fix: check.fix,
      unread: null,
    });
  });

  test.each<[what: string, hostname: string, service: string]>([
    ['of another worker on another name', `www.${EMULATOR_ZONE}`, OTHER],
    ['of another worker on a name above', EMULATOR_ZONE, OTHER],
    ['of the edge itself', HOST, EMULATOR_SCRIPT],
  ])('%s is no problem', async (_what, hostname, service) => {
    await route(`*.${EMULATOR_ZONE}/*`, EMULATOR_SCRIPT);
    await customDomain(hostname, service);
    expect(await checkEdgePart(deps(), [SITE])).toMatchObject({ status: 'passed', fix: null });
    expect(await edgePathOf(deps(), SITE, 3_000)).toEqual({ problem: null, fix: null, unread: null });
  });

  test('behind the site’s own route takes no request, and is named', async () => {
    await route(`${HOST}/*`, EMULATOR_SCRIPT);
    await customDomain(HOST, OTHER);
    expect(await checkEdgePart(deps(), [SITE])).toMatchObject({
      status: 'passed',
      detail: expect.stringMatching(
        /the Workers custom domain acme-shop\.example\.net of the worker another-worker stands behind/,
      ),
    });
    expect(await edgePathOf(deps(), SITE, 3_000)).toEqual({ problem: null, fix: null, unread: null });
  });
});

describe('a token without a permission', () => {
  test.each([
    ['Zone Settings', /^not checked: Google’s tag gateway \(.*Zone Settings: Read\)$/],
    ['Workers Scripts', /^not checked: Workers custom domains .*\(.*Workers Scripts: Read\)$/],
  ])('%s is said, and what it hides counts as not checked', async (permission, unread) => {
    await using limited = await withoutPermissions(permission);
    const own = { ...deps(), client: limited.client(), zoneId: limited.zone.id };
    const check = await checkEdgePart(own, [SITE]);
    expect(check).toEqual({
      name: 'edge_routes',
      status: 'skipped',
      detail: expect.stringMatching(unread),
      fix: null,
    });
    expect(await edgePathOf(own, SITE, 3_000)).toEqual({ problem: null, fix: null, unread: check.detail });
    await limited.call('POST', `/zones/${limited.zone.id}/workers/routes`, { pattern: `${HOST}/g/*` });
    expect(await checkEdgePart(own, [SITE])).toMatchObject({
      status: 'failed',
      detail: expect.stringMatching(/the Workers route \S+\/g\/\* leads .*; not checked: /),
    });
  });

  test('Workers Routes fails the check', async () => {
    await using limited = await withoutPermissions('Workers Routes');
    const own = { ...deps(), client: limited.client(), zoneId: limited.zone.id };
    expect(await checkEdgePart(own, [SITE])).toMatchObject({
      status: 'failed',
      fix: expect.stringContaining('Workers routes'),
    });
  });

  async function withoutPermissions(...lacking: string[]) {
    const emulator = await startEmulator({ lacking });
    return { ...emulator, [Symbol.asyncDispose]: () => emulator.close() };
  }
});

test('an API that doesn’t answer is no problem of the site, and fails the host’s own check', async () => {
  const silent = await silentServer();
  const away = { ...deps(), client: cloudflare.client({ url: silent.url, timeoutMs: 200 }) };
  expect(await edgePathOf(away, SITE, 3_000)).toBeUndefined();
  expect(await checkEdgePart(away, [SITE])).toMatchObject({ status: 'failed' });
  await silent.close();
});
