import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CALLERS, isOpenTo, type RouteAccess } from '../../../management/access/routes.ts';
import { rolesDocument } from '../../../management/api-document.ts';
import { RouteCalls } from '../../support/management/route-calls.ts';
import { World } from '../../support/management/world.ts';

let world: World;
let calls: RouteCalls;
let routes: readonly RouteAccess[];
const subjects = { viewer: 'viewer', editor: 'editor', admin: 'admin', owner: 'owner', operator: 'root' };

beforeAll(async () => {
  world = await World.open({ logLevel: 'silent' });
  routes = world.management?.routes ?? [];
  calls = await RouteCalls.open(world);
});
afterAll(() => world.close());

/** Codes by which a role is refused. What is wrong with the request itself is answered with other codes. */
const REFUSALS = [
  'forbidden',
  'unknown_client',
  'unknown_container',
  'unknown_operation',
  'unknown_organisation',
  'unknown_webhook',
];
/** Codes that don't depend on the caller: these tests have a fake provisioner, no login and no bucket of raw logs. */
const ABSENT = ['host_unavailable', 'no_login', 'search_unavailable'];

async function tryAs(route: RouteAccess, as: string) {
  const { status, body } = await calls.call(route, as);
  return { status, code: body?.code };
}

test('every route declares what it demands', () => {
  expect(routes.length).toBeGreaterThan(40);
  expect(
    routes.filter(({ access }) => access === undefined).map(({ method, url }) => `${method} ${url}`),
  ).toEqual([]);
});

test('docs/roles.md is up to date (npm run generate:roles writes it)', async () => {
  const written = await readFile(new URL('../../../docs/roles.md', import.meta.url), 'utf8');
  expect(written).toBe(await rolesDocument());
});

test.each(CALLERS)('each route is open to the %s exactly as docs/roles.md says', async (caller) => {
  const wrong: string[] = [];
  for (const route of routes) {
    const { status, code } = await tryAs(route, subjects[caller]);
    const isRefused = REFUSALS.includes(code);
    const isValid = status < 500 || ABSENT.includes(code);
    if (isRefused === isOpenTo(route, caller) || !isValid || status === 400) {
      wrong.push(`${route.method} ${route.url}: ${status} ${code}`);
    }
  }
  expect(wrong).toEqual([]);
});

test('a stranger sees nothing, and may do only what is open to every caller', async () => {
  const wrong: string[] = [];
  for (const route of routes.filter(({ access }) => access !== 'self')) {
    const { status, code } = await tryAs(route, 'stranger');
    if (status !== 404 && !(status === 403 && route.access === 'operate')) {
      wrong.push(`${route.method} ${route.url}: ${status} ${code}`);
    }
  }
  expect(wrong).toEqual([]);
});
