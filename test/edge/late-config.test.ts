import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import * as z from 'zod/mini';
import { definePlugin } from '../../plugins/contract.ts';

/**
 * The core outside workerd, so that the test can move the clock. Its type is written here, because the core's own types
 * need those of the worker, which tests in Node don't have.
 */
interface App {
  buildEdge(dependencies: object): (request: Request, waitUntil: () => void) => Promise<Response>;
}
const { buildEdge }: App = await import(String(new URL('../../edge/app.ts', import.meta.url)));

const HOST = 'shop.edge.test';
const CONTAINER = '3f0a6679-7425-40de-944b-e07fc1f90000';
const LOADER = 'lt_loader0token00001';
const DOCUMENTS: Readonly<Record<string, object>> = {
  ROUTES: { version: 1, siteId: 'shop', containerId: CONTAINER, origin: 'https://shop-origin.test' },
  SITE_REGISTRY: {
    version: 1,
    siteId: 'shop',
    containerId: CONTAINER,
    domains: [],
    proxyPaths: [],
    consent: 'opt_out',
  },
  LOADER_TOKEN_MAP: { version: 1, containerId: CONTAINER },
};

/** A plugin that checks the loader's token, which takes a lookup of its own, and then asks whether it may run. */
const cautious = definePlugin({
  name: 'cautious',
  kind: 'mandatory',
  config: z.looseObject({}),
  routes: [
    {
      method: 'GET',
      path: '/may-run',
      async handle(_input, context) {
        await context.ownsLoader(LOADER);
        return Response.json({ mayRun: await context.isConfirmed() });
      },
    },
  ],
});

/** What a store answers after `ms` milliseconds of the test's clock. */
function answered(ms: number, text: string): Promise<string | null> {
  const read = Promise.withResolvers<string | null>();
  setTimeout(() => read.resolve(text), ms);
  return read.promise;
}

/** The edge with stores whose reads take the given milliseconds (`delays`, by store). */
function edgeWith(delays: Readonly<Record<string, number>>, edgeConfig: () => Promise<string | null>) {
  const reads: string[] = [];
  const namespace = (name: string) => ({
    get(_key: string): Promise<string | null> {
      reads.push(name);
      if (name === 'EDGE_CONFIG') return edgeConfig();
      const text = JSON.stringify(DOCUMENTS[name] ?? null);
      return answered(delays[name] ?? 0, text);
    },
    put: async () => undefined,
    delete: async () => undefined,
  });
  const edge = buildEdge({
    plugins: [cautious],
    namespaces: {
      ROUTES: namespace('ROUTES'),
      SITE_REGISTRY: namespace('SITE_REGISTRY'),
      LOADER_TOKEN_MAP: namespace('LOADER_TOKEN_MAP'),
      EDGE_CONFIG: namespace('EDGE_CONFIG'),
      COOKIES: namespace('COOKIES'),
    },
    cache: { match: async () => undefined, put: async () => undefined, delete: async () => false },
    fetch,
    now: Date.now,
    log: () => undefined,
    record: () => undefined,
    vendor: 'https://vendor.test',
    variables: {},
    hopSecret: undefined,
    originTimeout: 30_000,
    configTtl: 60_000,
  });
  const answers: unknown[] = [];
  const ask = () =>
    edge(new Request(`https://${HOST}/may-run`), () => undefined)
      .then((response) => response.json())
      .then((answer) => void answers.push(answer));
  return { ask, answers, reads };
}

const forbidding = JSON.stringify({
  version: 2,
  module: 'tagyard',
  features: {},
  modules: { cautious: { enabled: false } },
  consent: 'opt_out',
});

describe('a plugin that a late EDGE_CONFIG may forbid', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** The first read fails after some milliseconds; later ones never end. */
  function failingAfter(ms: number): () => Promise<string | null> {
    let isFirst = true;
    return () => {
      const fails = isFirst;
      isFirst = false;
      const read = Promise.withResolvers<string | null>();
      if (fails) setTimeout(() => read.reject(new Error('the store fails')), ms);
      return read.promise;
    };
  }

  test.each([
    ['never ends', 5000, () => new Promise<null>(() => undefined)],
    ['fails before the request’s other lookups end', 4000, failingAfter(3000)],
    ['fails after the request’s other lookups', 4500, failingAfter(4500)],
  ])('waits for one read of EDGE_CONFIG, for at most 5 s: one that %s', async (_name, ms, read) => {
    const { ask, answers } = edgeWith({ LOADER_TOKEN_MAP: 3900 }, read);
    void ask();
    await vi.advanceTimersByTimeAsync(ms - 60);
    expect(answers).toEqual([]);
    await vi.advanceTimersByTimeAsync(70);
    expect(answers).toEqual([{ mayRun: true }]);
  });

  test('doesn’t run if EDGE_CONFIG arrives within the 5 s and forbids it', async () => {
    const { ask, answers } = edgeWith({ LOADER_TOKEN_MAP: 1000 }, () => answered(3000, forbidding));
    void ask();
    await vi.advanceTimersByTimeAsync(2990);
    expect(answers).toEqual([]);
    await vi.advanceTimersByTimeAsync(20);
    expect(answers).toEqual([{ mayRun: false }]);
  });

  test('doesn’t read EDGE_CONFIG a second time after the store has failed', async () => {
    const { ask, answers, reads } = edgeWith({}, () => Promise.reject(new Error('the store fails')));
    void ask();
    await vi.advanceTimersByTimeAsync(100);
    expect(answers).toEqual([{ mayRun: true }]);
    expect(reads.filter((name) => name === 'EDGE_CONFIG')).toHaveLength(1);
  });
});
