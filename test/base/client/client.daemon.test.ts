import { afterAll, beforeAll, expect, expectTypeOf, test } from 'vitest';
import {
  ApiProblem,
  createClient,
  type ListItem,
  type TagyardClientOptions,
} from '../../../base/client/index.ts';
import { CONFIG, World } from '../../support/management/world.ts';

let world: World;
let url: string;
let clientId: string;
beforeAll(async () => {
  world = await World.open({ logLevel: 'silent' });
  url = await world.listen();
  clientId = await world.client();
});
afterAll(() => world.close());

const clientAs = (subject: string, options: Partial<TagyardClientOptions> = {}) =>
  createClient({ url, token: () => world.issuer.token(subject), ...options });

const shop = (domain: string) => ({
  clientId,
  name: domain,
  domains: [domain],
  webTagIds: { [domain]: 'GTM-ABC1234' },
  containerConfigB64: CONFIG,
});

/** Answers the first requests itself, as a proxy or a broken connection does, and hands on the others. */
function faulty(...faults: readonly (() => Response)[]) {
  const sent: Request[] = [];
  const rest = [...faults];
  const fetcher = async (request: Request) => {
    sent.push(request.clone());
    return rest.shift()?.() ?? (await fetch(request));
  };
  return { sent, fetch: fetcher };
}

const busy = (status: number, after?: string) => () =>
  new Response('busy', { status, ...(after === undefined ? {} : { headers: { 'retry-after': after } }) });
const cut = () => {
  throw new TypeError('fetch failed');
};

test('creates, reads and changes a container, with the types of the OpenAPI document', async () => {
  const api = clientAs('owner');
  const { data: created, response } = await api.post('/server-containers', { body: shop('typed.example') });
  expect(response.status).toBe(202);
  const at = { path: { id: created.id } };
  const { data: read, etag } = await api.get('/server-containers/{id}', { params: at });
  expect(read.domains.map(({ domain }) => domain)).toEqual(['typed.example']);
  const header = { 'if-match': etag ?? '' };
  const changed = await api.patch('/server-containers/{id}', {
    params: { ...at, header },
    body: { name: 'Typed' },
  });
  expect(changed.data.name).toBe('Typed');
  expect(changed.etag).not.toBe(etag);
  const stale = api.patch('/server-containers/{id}', { params: { ...at, header }, body: { name: 'Other' } });
  await expect(stale).rejects.toMatchObject({ status: 412, code: 'precondition_failed' });
});

test('throws a problem with its code, its fields and the id of the request', async () => {
  // @ts-expect-error: the OpenAPI document demands more members
  const creation = clientAs('owner').post('/server-containers', { body: { clientId } });
  const problem = await creation.catch((error: unknown) => error);
  expect(problem).toBeInstanceOf(ApiProblem);
  expect(problem).toMatchObject({
    status: 400,
    code: 'invalid_request',
    requestId: expect.stringMatching(/./),
    errors: expect.arrayContaining([{ path: 'name', message: expect.any(String) }]),
    message: expect.stringMatching(/^POST \/server-containers: 400 invalid_request: .*name: /),
  });
  const page = faulty(() => new Response('<html>', { status: 502, statusText: 'Bad Gateway' }));
  await expect(clientAs('owner', page).get('/server-containers')).rejects.toMatchObject({
    status: 502,
    code: null,
    message: 'GET /server-containers: 502 Bad Gateway',
  });
});

test('creates once, although the first answer is lost', async () => {
  const lost = async (request: Request) => {
    await fetch(request);
    throw new TypeError('the connection broke');
  };
  const attempts: string[] = [];
  const api = clientAs('owner', {
    fetch: async (request) => {
      attempts.push(request.headers.get('idempotency-key') ?? '');
      return await (attempts.length === 1 ? lost(request) : fetch(request));
    },
  });
  const { data } = await api.post('/server-containers', { body: shop('lost.example') });
  expect(attempts).toEqual([attempts[0], attempts[0]]);
  expect(attempts[0]).toMatch(/^[\da-f-]{36}$/);
  const names: string[] = [];
  for await (const container of api.list('/server-containers')) names.push(container.name);
  expect(names.filter((name) => name === 'lost.example')).toHaveLength(1);
  expect(data.name).toBe('lost.example');
});

test.each<[string, (() => Response)[], number | string]>([
  ['a 429 at the time that retry-after names', [busy(429, '0')], 2],
  ['a 503 at the date that retry-after names', [busy(503, new Date(0).toUTCString())], 2],
  ['a call three times at most', [busy(503, '0'), busy(503, '0'), busy(503, '0'), busy(503, '0')], '503'],
  ['nothing without retry-after', [busy(503)], '503'],
  ['nothing if the wait is too long', [busy(429, '3600')], '429'],
  ['a GET without an answer', [cut], 2],
])('repeats %s', async (_what, faults, expected) => {
  const proxy = faulty(...faults);
  const listing = clientAs('owner', proxy).get('/server-containers', { params: { query: { limit: 1 } } });
  if (typeof expected === 'string') await expect(listing).rejects.toThrow(`: ${expected} `);
  else expect((await listing).response.status).toBe(200);
  expect(proxy.sent).toHaveLength(typeof expected === 'number' ? expected : faults.length);
});

test.each([
  ['an answer', cut, 'fetch failed'],
  ['the service', busy(503, '0'), ': 503 '],
])('repeats no change without a key where %s is missing: it may be made', async (_what, fault, said) => {
  const proxy = faulty(fault);
  const change = clientAs('root', proxy).put('/clients/{id}/members/{subject}', {
    params: { path: { id: clientId, subject: 'ada' } },
    body: { role: 'admin' },
  });
  await expect(change).rejects.toThrow(said);
  expect(proxy.sent).toHaveLength(1);
});

test('stops waiting when the call is aborted', async () => {
  const abort = new AbortController();
  const proxy = faulty(() => {
    abort.abort(new Error('no longer needed'));
    return busy(429, '50')();
  });
  const listing = clientAs('owner', proxy).get('/server-containers', { signal: abort.signal });
  await expect(listing).rejects.toThrow('no longer needed');
});

test('lists all pages', async () => {
  const api = clientAs('owner');
  await api.post('/server-containers', { body: shop('another.example') });
  const found: ListItem<'/server-containers'>[] = [];
  for await (const container of api.list('/server-containers', { params: { query: { limit: 1 } } })) {
    found.push(container);
  }
  const { data } = await api.get('/server-containers', { params: { query: { limit: 100 } } });
  expect(found.length).toBeGreaterThan(1);
  expect(found.map(({ id }) => id)).toEqual(data.containers.map(({ id }) => id));
});

test('types an item of a list, also where the answer has a second list (`missing`)', () => {
  expectTypeOf<ListItem<'/requests'>>().toExtend<{ route: string }>();
  expectTypeOf<ListItem<'/usage'>>().toExtend<{ day: string }>();
});

test('lists by the `next` of each page, whatever the member with the items is called', async () => {
  const sent: URL[] = [];
  const api = clientAs('owner', {
    fetch: async (request) => {
      sent.push(new URL(request.url));
      return await fetch(request);
    },
  });
  const { data: created } = await api.post('/server-containers', { body: shop('listed.example') });
  const path = { id: created.id };
  await api.patch('/server-containers/{id}', { params: { path }, body: { name: 'Renamed' } });
  sent.length = 0;
  const found: ListItem<'/server-containers/{id}/history'>[] = [];
  const query = { limit: 1 };
  for await (const entry of api.list('/server-containers/{id}/history', { params: { path, query } })) {
    found.push(entry);
  }
  expect(found.map(({ subject }) => subject)).toEqual(['Change listed-example', 'Create listed-example']);
  expect(sent.map(({ searchParams }) => [...searchParams.keys()])).toEqual([['limit'], ['limit', 'cursor']]);
});
