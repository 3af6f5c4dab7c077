import { X509Certificate } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openAccount } from '../../../gitops/certificates/account.ts';
import { Ledger } from '../../../gitops/certificates/ledger.ts';
import { Orders, type OrdersDeps } from '../../../gitops/certificates/orders.ts';
import { CertificateStore } from '../../../gitops/certificates/store.ts';
import { type Acme, acmeAccount, type Issued } from '../../../gitops/clients/acme.ts';
import { AcmeError, readRetryAfter } from '../../../gitops/clients/acme-errors.ts';
import { ensureLocalCa, type LocalCa } from '../../../sites/local/local-ca.ts';

const HOUR = 3_600_000;
const NO_WAIT = () => undefined;

describe('orders', () => {
  let home: string;
  let ca: LocalCa;
  let store: CertificateStore;
  let ledger: Ledger;
  /** The names that certificates were ordered for, the first one first. */
  let asked: string[];
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'tagyard-orders-'));
    ca = await ensureLocalCa(join(home, 'ca'));
    store = new CertificateStore(join(home, 'names'));
    await store.prepare();
    ledger = new Ledger(join(home, 'ledger.json'));
    asked = [];
  });
  afterEach(() => rm(home, { recursive: true, force: true, maxRetries: 5 }));

  const issued = async (host: string): Promise<Issued> => {
    const { cert, key } = await ca.pathsFor(host);
    return { chain: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') };
  };
  const open = (answer: (host: string) => Promise<Issued>, extra: Partial<OrdersDeps> = {}) => {
    const acme: Acme = {
      async issue(host, _signal, onOrder) {
        asked.push(host);
        onOrder();
        return await answer(host);
      },
      caaIdentities: async () => [],
    };
    return new Orders({
      acme,
      store,
      ledger,
      known: null,
      perHour: 600,
      probe: async () => null,
      now: Date.now,
      random: () => 1,
      log: { info: () => undefined, warn: () => undefined },
      ...extra,
    });
  };
  const refuse = (type: string, retryAt?: number) => async (): Promise<Issued> => {
    throw new AcmeError(type, 'the words of the authority', retryAt === undefined ? {} : { retryAt });
  };

  test('store the issued certificate', async () => {
    const outcome = await open(issued).place('a.example', 0, NO_WAIT);
    expect(outcome).toMatchObject({ facts: { issuer: expect.stringContaining('Tagyard local CA') } });
    const pem = await readFile(store.paths('a.example').cert, 'utf8');
    expect(new X509Certificate(pem).checkHost('a.example')).toBe('a.example');
  });

  test.each([
    ['connection', 1, 10 / 60],
    ['connection', 2, 20 / 60],
    ['connection', 12, 12],
    ['unreachable', 1, 1 / 60],
    ['unreachable', 12, 1],
  ])('that fail with %s %i times in a row pause for at most %d hours', async (type, failures, hours) => {
    const now = Date.now();
    const orders = open(refuse(type), { now: () => now });
    for (let failure = 0; failure < failures; failure += 1) await orders.place('a.example', 0, NO_WAIT);
    expect(orders.failure('a.example')).toMatchObject({ count: failures });
    expect(((orders.failure('a.example')?.retryAt ?? 0) - now) / HOUR).toBeCloseTo(hours, 5);
  });

  test('wait as long as the authority demands of their domain, across a restart too', async () => {
    const until = Date.now() + 30 * HOUR;
    await open(refuse('rateLimited', until)).place('www.acme.example', 0, NO_WAIT);
    const again = open(issued, { known: await ledger.read() });
    expect(again.failure('www.acme.example')).toMatchObject({ count: 1, retryAt: until });
    let waits = false;
    const held = again.place('tags.acme.example', 0, () => {
      waits = true;
    });
    expect(await again.place('www.beta.example', 0, NO_WAIT)).toHaveProperty('facts');
    expect(waits).toBe(true);
    again.stop();
    expect(await held).toEqual({ notYet: '' });
    expect(asked).toEqual(['www.acme.example', 'www.beta.example']);
  });

  test('are placed first for names without a certificate, then for the one that ends soonest', async () => {
    const release: (() => void)[] = [];
    const orders = open(async (host) => {
      await new Promise<void>((resolve) => release.push(resolve));
      return await issued(host);
    });
    const first = Array.from({ length: 8 }, (_, index) => orders.place(`busy-${index}.example`, 0, NO_WAIT));
    const late = orders.place('late.example', 300, NO_WAIT);
    const soon = orders.place('soon.example', 200, NO_WAIT);
    const none = orders.place('none.example', 0, NO_WAIT);
    await expect.poll(() => release.length).toBe(8);
    for (let index = 0; index < 11; index += 1) {
      await expect.poll(() => release.length).toBeGreaterThan(index);
      release[index]?.();
    }
    await Promise.all([...first, late, soon, none]);
    expect(asked.slice(8)).toEqual(['none.example', 'soon.example', 'late.example']);
  });

  test('whose name is forgotten while they are placed store nothing', async () => {
    const orders = open(async (host) => {
      orders.forget(host);
      return await issued(host);
    });
    expect(await orders.place('a.example', 0, NO_WAIT)).toEqual({ notYet: '' });
    expect(await store.read('a.example')).toBeNull();
  });

  test.each<[string, (orders: Orders) => void]>([
    ['stops them', (orders) => orders.stop()],
    ['forgets the name', (orders) => orders.forget('a.example')],
  ])('end when the caller %s, even if the authority never completes them', async (_who, end) => {
    const orders = open(() => new Promise(() => undefined));
    const placed = orders.place('a.example', 0, NO_WAIT);
    await expect.poll(() => asked).toEqual(['a.example']);
    end(orders);
    expect(await placed).toEqual({ notYet: '' });
  });

  test('fail, and store nothing, if the authority issues an invalid certificate', async () => {
    const orders = open(() => issued('b.example'));
    const outcome = await orders.place('a.example', 0, NO_WAIT);
    expect(outcome).toMatchObject({
      failed: { message: expect.stringContaining('the certificate is for b.example, not for a.example') },
    });
    expect(await store.read('a.example')).toBeNull();
  });

  test('are not placed before the proxy answers challenges', async () => {
    const orders = open(issued, { probe: async () => 'nothing answers' });
    expect(await orders.place('a.example', 0, NO_WAIT)).toEqual({ notYet: 'nothing answers' });
    expect(asked).toEqual([]);
  });

  test('are not placed if the proxy can’t be asked, and give the reason', async () => {
    const probe = () => Promise.reject(new Error('nginx isn’t started yet'));
    expect(await open(issued, { probe }).place('a.example', 0, NO_WAIT)).toEqual({
      notYet: 'Error: nginx isn’t started yet',
    });
  });

  test('hand an unexpected error to their caller; others are placed', async () => {
    const warn = vi.fn().mockImplementationOnce(() => {
      throw new Error('the log is full');
    });
    const orders = open(refuse('connection'), { log: { info: () => undefined, warn } });
    await expect(orders.place('a.example', 0, NO_WAIT)).rejects.toThrow('the log is full');
    for (let index = 0; index < 8; index += 1) {
      expect(await orders.place(`b${index}.example`, 0, NO_WAIT)).toHaveProperty('failed');
    }
  });
});

test.each([
  ['120', 120_000],
  ['Thu, 01 Jan 1970 00:02:00 GMT', 120_000],
  ['99999999999999999999', 30 * 24 * HOUR],
  ['9'.repeat(400), 30 * 24 * HOUR],
  ['Fri, 31 Dec 9999 23:59:59 GMT', 30 * 24 * HOUR],
  ['soon', null],
])('a Retry-After of %j counts for at most 30 days, an invalid one not at all', (header, at) => {
  expect(readRetryAfter(header, 0)).toBe(at);
});

test('an authority’s refusal keeps its type, message and Retry-After', async () => {
  const home = await mkdtemp(join(tmpdir(), 'tagyard-acme-'));
  const server = createServer((request, response) => {
    const at = (path: string) => `http://${request.headers.host}${path}`;
    response.setHeader('replay-nonce', 'bm9uY2U');
    if (request.url === '/dir') {
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify({ newNonce: at('/nonce'), newAccount: at('/account'), newOrder: at('/order') }),
      );
    } else if (request.url === '/nonce') response.end();
    else {
      response.writeHead(429, { 'content-type': 'application/problem+json', 'retry-after': '7200' });
      response.end(JSON.stringify({ type: 'urn:ietf:params:acme:error:rateLimited', detail: 'too\nmany' }));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  const { key } = await openAccount(home, 'secret');
  const acme = acmeAccount({
    directoryUrl: `http://127.0.0.1:${address.port}/dir`,
    accountKey: key,
    accountUrl: null,
    onAccount: async () => undefined,
  });
  const before = Date.now();
  const error = await acme
    .issue('a.example', new AbortController().signal, NO_WAIT)
    .catch((cause: unknown) => cause);
  server.close();
  await rm(home, { recursive: true, maxRetries: 5 });
  if (!(error instanceof AcmeError)) throw new Error('it was not refused', { cause: error });
  expect(error).toMatchObject({ type: 'rateLimited', message: 'too many' });
  expect((error.retryAt ?? 0) - before).toBeGreaterThanOrEqual(7_200_000);
});
