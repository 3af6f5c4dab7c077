import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CALLERS, isOpenTo, type RouteAccess } from '../../../management/access/routes.ts';
import { rolesDocument } from '../../../management/api-document.ts';
import { creation, World } from '../../support/management/world.ts';
import { serviceAccountJson } from '../../support/service-account.ts';

let world: World;
let routes: readonly RouteAccess[];
let examples: Map<string, object | undefined>;
const ids = { client: '', other: '', organisation: '', container: '', operation: '', webhook: '' };
const subjects = { viewer: 'viewer', editor: 'editor', admin: 'admin', owner: 'owner', operator: 'root' };

beforeAll(async () => {
  world = await World.open({ logLevel: 'silent' });
  routes = world.management?.routes ?? [];
  const members = ['owner', 'admin', 'editor', 'viewer'].map((role) => ({ subject: role, role }));
  const make = async (path: string) =>
    (await world.call('POST', path, { as: 'root', body: { name: 'Acme', members } })).body.id;
  ids.client = await make('/clients');
  ids.other = await make('/clients');
  ids.organisation = await make('/organisations');
  const body = creation(ids.client);
  ids.container = (await world.call('POST', '/server-containers', { as: 'owner', body })).body.id;
  const operations = await world.call('GET', `/server-containers/${ids.container}/operations`, {
    as: 'owner',
  });
  ids.operation = operations.body.items[0].id;
  const document = (await world.call('GET', '/openapi.json')).body;
  examples = new Map(
    Object.values<Record<string, { operationId: string; requestBody?: Body }>>(document.paths)
      .flatMap((methods) => Object.values(methods))
      .map(({ operationId, requestBody }) => {
        const all = Object.values(requestBody?.content['application/json'].examples ?? {});
        return [operationId, (all.find(({ value }) => !('image' in value)) ?? all[0])?.value];
      }),
  );
});
afterAll(() => world.close());

interface Body {
  readonly content: {
    readonly 'application/json': { readonly examples: Record<string, { readonly value: object }> };
  };
}

/** A refusal of the role: whatever is wrong with the request itself is answered otherwise. */
const REFUSALS = [
  'forbidden',
  'unknown_client',
  'unknown_container',
  'unknown_operation',
  'unknown_organisation',
  'unknown_webhook',
];
/** Answers that no caller is the cause of: here is no whole provisioner, no login and no bucket of raw logs. */
const ABSENT = ['host_unavailable', 'no_login', 'search_unavailable'];

async function tokenId(): Promise<string> {
  const body = { name: 'x', client: ids.client, scopes: ['viewer'] };
  return (await world.call('POST', '/tokens', { as: 'owner', body })).body.id;
}

/** Deletes the one of the last call: a client may have a few only. */
async function webhookId(): Promise<string> {
  if (ids.webhook !== '') await world.call('DELETE', `/webhooks/${ids.webhook}`, { as: 'owner' });
  const body = { clientId: ids.client, url: 'http://127.0.0.1:9/' };
  ids.webhook = (await world.call('POST', '/webhooks', { as: 'owner', body })).body.id;
  return ids.webhook;
}

async function urlOf({ url }: RouteAccess): Promise<string> {
  const byFolder: Record<string, string> = {
    clients: ids.client,
    organisations: ids.organisation,
    'server-containers': ids.container,
    operations: ids.operation,
    tokens: url.startsWith('/tokens/:id') ? await tokenId() : '',
    webhooks: url.startsWith('/webhooks/:id') ? await webhookId() : '',
  };
  return url
    .replace(':id', byFolder[url.split('/')[1] ?? ''] ?? randomUUID())
    .replace(':subject', 'ada')
    .replace(':domain', 'acme.example')
    .replace(':token', '0123456789abcdef')
    .replace(':fpid', '0123456789abcdef0123456789abcdef')
    .replace(/:\w+/g, () => randomUUID());
}

/** Routes that have a parameter in the query. */
const QUERY: Readonly<Record<string, string>> = {
  removeDomain: '?domain=acme.example',
  removeCustomDomain: '?domain=acme.example',
};

function bodyOf({ operation }: RouteAccess): object | undefined {
  const example = examples.get(operation);
  if (example === undefined) return undefined;
  return {
    ...example,
    ...('clientId' in example ? { clientId: ids.client } : {}),
    ...('client' in example ? { client: ids.client } : {}),
    ...('organisation' in example ? { organisation: ids.organisation } : {}),
    ...('to' in example ? { to: ids.other, containers: [randomUUID()] } : {}),
    ...('private_key' in example ? { private_key: serviceAccountJson().private_key } : {}),
    ...('domains' in example && operation === 'orderDomains' ? { domains: ['acme.example'] } : {}),
    // A further domain would need more than the options of one.
    ...(operation === 'addDomain' ? { domain: 'acme.example' } : {}),
  };
}

async function tryAs(route: RouteAccess, as: string) {
  const body = bodyOf(route);
  const url = `${await urlOf(route)}${QUERY[route.operation] ?? ''}`;
  const method = route.method as 'GET'; // one of the verbs that routes have
  const answer = await world.call(method, url, { as, ...(body === undefined ? {} : { body }) });
  return { status: answer.status, code: answer.body?.code };
}

test('every route declares what it demands', () => {
  expect(routes.length).toBeGreaterThan(40);
  expect(
    routes.filter(({ access }) => access === undefined).map(({ method, url }) => `${method} ${url}`),
  ).toEqual([]);
});

test('docs/roles.md is fresh: run npm run generate:roles', async () => {
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
