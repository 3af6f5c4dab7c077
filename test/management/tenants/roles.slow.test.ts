import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CALLERS, isOpenTo, type RouteAccess } from '../../../management/access/routes.ts';
import { rolesDocument } from '../../../management/api-document.ts';
import { RouteCalls } from '../../support/management/route-calls.ts';
import { World } from '../../support/management/world.ts';
import { sendBytes } from '../../support/refused-requests.ts';

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

describe('without a role', () => {
  const READS = ['GET', 'HEAD'];
  /** Routes that every caller may use. Their bodies are small. */
  const OPEN = ['POST /invitations/accept', 'POST /session/logout'];

  test('a caller is refused before any of the body has arrived', async () => {
    const at = await world.listen();
    const authorization = `authorization: Bearer ${await world.issuer.token('stranger')}`;
    const late: string[] = [];
    for (const route of routes.filter(({ method }) => !READS.includes(method))) {
      if (OPEN.includes(`${route.method} ${route.url}`)) continue;
      const head = `${route.method} ${await calls.urlOf(route)} HTTP/1.1\r\nhost: a\r\n${authorization}\r\n`;
      const fields = 'content-type: application/json\r\ncontent-length: 1000\r\nconnection: close';
      const answer = await sendBytes(at, `${head}${fields}\r\n\r\n`, { waitMs: 2_000 });
      if (![403, 404].includes(answer.status)) late.push(`${route.method} ${route.url}: ${answer.status}`);
    }
    expect(late).toEqual([]);
  });

  test('a malformed id is refused before the body, too', async () => {
    const token = await world.issuer.token('stranger');
    const head = `PATCH /server-containers/no-id HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\n`;
    const fields = 'content-type: application/json\r\ncontent-length: 1000\r\nconnection: close';
    const answer = await sendBytes(await world.listen(), `${head}${fields}\r\n\r\n`, { waitMs: 2_000 });
    expect([answer.status, JSON.parse(answer.body).errors]).toEqual([
      400,
      [{ path: 'id', message: expect.any(String) }],
    ]);
  });
});

describe('an archived client or organisation', () => {
  /** What archives and brings it back, and changes of which each item is judged as a request of its own. */
  const STILL = /^POST \/((clients|organisations)\/:id\/(un)?archive|bulk)$/;

  test('is open to reads and deletions only', async () => {
    const own = await World.open({ logLevel: 'silent' });
    try {
      const archived = await RouteCalls.open(own);
      const webhook = routes.find(({ operation }) => operation === 'getWebhook');
      if (webhook === undefined) throw new Error('there is no such route');
      await archived.call(webhook, 'owner');
      // As a change of the files in git does it, while there are containers.
      for (const table of ['clients', 'organisations'] as const) {
        await own.owner.updateTable(table).set({ archived_at: new Date() }).execute();
      }
      const wrong: string[] = [];
      const isDeletion = ({ method }: RouteAccess) => method === 'DELETE';
      for (const route of [...routes.filter((one) => !isDeletion(one)), ...routes.filter(isDeletion)]) {
        const isTried = route.access !== 'self' && route.access !== 'operate';
        const name = `${route.method} ${route.url}`;
        if (!isTried || STILL.test(name)) continue;
        const { body } = await archived.call(route, 'owner');
        const isClosed = ['client_archived', 'organisation_archived'].includes(body?.code);
        if (isClosed === ['GET', 'DELETE'].includes(route.method)) wrong.push(`${name}: ${body?.code}`);
      }
      expect(wrong).toEqual([]);
    } finally {
      await own.close();
    }
  });
});
