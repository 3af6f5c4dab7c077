import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { dataPoint, type RequestRecord } from '../../edge/logs/request-record.ts';
import { askEdge } from '../../gitops/host-report/edge-visit.ts';
import { nodeLookup } from '../../gitops/host-report/node-lookup.ts';
import { checkEdge } from '../../gitops/host-report/part-checks.ts';
import { hostProbeMark } from '../../gitops/host-report/probe-mark.ts';
import { HOP_SECRET, type Sending, type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';
import { eventually } from '../support/eventually.ts';

let stage: Stage;
let site: StagedSite;
beforeAll(async () => {
  stage = await startStage();
  site = await stage.site();
});
beforeEach(async () => {
  stage.upstream.received.length = 0;
  stage.upstream.reply = () => ({});
  stage.upstream.take = undefined;
  await stage.seen();
});
afterAll(() => stage.close());

/** The records of the requests that were sent since the last call, once there are `count` of them. */
async function recorded(count = 1): Promise<RequestRecord[]> {
  const records: RequestRecord[] = [];
  await eventually(async () => {
    records.push(...(await stage.seen()).records);
    expect(records).toHaveLength(count);
  });
  return records;
}
/** The record of one request. */
async function recordOf(path: string, sending?: Sending, host = site.host): Promise<RequestRecord> {
  await stage.send(host, path, sending);
  const [record] = await recorded();
  if (record === undefined) throw new Error('no record');
  return record;
}
const post = (body: string, headers = {}): Sending => ({ method: 'POST', body, headers });

describe('request ids', () => {
  test('are the edge’s own; the caller’s is echoed, the tag server gets ours', async () => {
    const headers = { 'x-request-id': 'erika.mustermann', 'trace-id': 'max.mustermann' };
    for (const path of ['/g/collect?v=2', '/nothing', `/l/${site.loader}.js`]) {
      const answer = await stage.send(site.host, path, { headers });
      const [record] = await recorded();
      expect(record?.requestId).toMatch(/^[0-9a-f-]{36}$/);
      expect(answer.headers).toMatchObject({
        'x-request-id': 'erika.mustermann',
        'x-tagyard-request-id': record?.requestId,
      });
      expect(answer.json?.requestId).toBe(path === '/nothing' ? record?.requestId : undefined);
      for (const received of stage.upstream.received.splice(0)) {
        expect(received.headers['trace-id']).toBe(record?.requestId);
      }
    }
  });
});

describe('a hit that is refused on its way', () => {
  test.each([
    ['/g/collect?v=2', 429, /too many requests in a second/],
    ['/g/s/collect?v=2', 431, /headers/],
    ['/mp/collect', 413, /body is too long/],
    ['/j/collect', 414, /address/],
    ['/g/s/collect', 503, /too many connections.*not ready/],
    ['/r/collect', 400, /no client/],
    ['/g/collect', 418, /status 418/],
  ])('is in the log with the reason: %s, %i', async (path, status, reason) => {
    stage.upstream.reply = () => ({ status });
    const record = await recordOf(path, post('en=x'));
    stage.upstream.reply = () => ({});
    expect(record).toMatchObject({ status, error: 'hit_refused', cause: expect.stringMatching(reason) });
  });

  test.each([
    ['/g/collect?v=2', 204],
    ['/g/collect?v=2', 302],
    ['/gtm/debug', 404],
    ['/gtag/js?id=G-1', 429],
  ])('is no other request: %s, %i', async (path, status) => {
    stage.upstream.reply = () => ({ status });
    const record = await recordOf(path);
    stage.upstream.reply = () => ({});
    expect(record).toMatchObject({ status, error: null });
  });
});

describe('events', () => {
  const long = (letters: number) => 'e'.repeat(letters);
  test.each<[string, Record<string, number>]>([
    ['/g/collect?v=2&en=page_view&_et=5', { page_view: 1 }],
    ['/g/collect?en=Add_To_Cart2', { Add_To_Cart2: 1 }],
    ['/g/s/collect?v=2&en=page_view', { page_view: 1 }],
    ['/data/g/collect?v=2&en=purchase', { purchase: 1 }],
    ['/g/collect?v=2', {}],
    ['/g/collect?v=2&een=x&ep.en=y', {}],
    ['/g/collect?en=', { other: 1 }],
    ['/g/collect?en=erika%20mustermann', { other: 1 }],
    ['/g/collect?en=erika@example.org', { other: 1 }],
    ['/g/collect?en=1st', { other: 1 }],
    ['/g/collect?en=constructor&en=__proto__', { constructor: 1, other: 1 }],
    [`/g/collect?en=${long(40)}`, { [long(40)]: 1 }],
    [`/g/collect?en=${long(41)}`, { other: 1 }],
    ['/healthy?en=page_view', {}],
  ])('of %s: %j', async (path, events) => {
    const paths = await stage.site({ proxyPaths: ['/data/*'] });
    expect((await recordOf(path, {}, paths.host)).events).toEqual(events);
  });

  test('are counted in the address and in each line of the body, which arrives as it was sent', async () => {
    const lines = [
      'en=page_view&_et=1',
      'en=scroll&ep.en=x&epn.percent=90',
      '_et=3&en=page_view',
      'en=a%20b',
    ];
    for (const body of [lines.join('\r\n'), lines.join('\n'), `${lines.join('\n')}\n`]) {
      const record = await recordOf('/g/collect?v=2&en=first', post(body, { 'content-type': 'text/plain' }));
      expect(record.events).toEqual({ first: 1, page_view: 2, scroll: 1, other: 1 });
      expect(record.bytesIn).toBe(body.length);
      expect(stage.upstream.received.at(-1)).toMatchObject({
        body,
        headers: { 'content-length': String(body.length), 'content-type': 'text/plain' },
      });
    }
  });

  test('in a large body of unstated length are all counted, however its chunks are cut', async () => {
    const body = 'en=page_view&dt=Gr%C3%BC%C3%9Fe&ep.text=größe\r\n'.repeat(20_000);
    const octets = Buffer.from(body);
    const socket = connect(stage.port, '127.0.0.1');
    socket.write(
      `POST /g/collect?v=2 HTTP/1.1\r\nHost: ${site.host}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`,
    );
    // Each cut is at another place of its line.
    for (let at = 0; at < octets.length; at += 4099) {
      const chunk = octets.subarray(at, at + 4099);
      socket.write(`${chunk.length.toString(16)}\r\n`);
      socket.write(chunk);
      socket.write('\r\n');
    }
    socket.end('0\r\n\r\n');
    socket.resume();
    const [record] = await recorded();
    expect(record).toMatchObject({ status: 200, events: { page_view: 20_000 }, bytesIn: null });
    expect(stage.upstream.received[0]?.body).toBe(body);
  });

  test('with names beyond a record’s first 20 are counted as other', async () => {
    const body = Array.from({ length: 300 }, (_, index) => `en=event_${index % 30}`).join('\n');
    const { events } = await recordOf('/g/collect?v=2', post(body));
    expect(Object.keys(events)).toHaveLength(21);
    expect(events).toMatchObject({ event_0: 10, event_19: 10, other: 100 });
  });

  test('in a large body don’t delay the answer, and are all in the record', async () => {
    stage.upstream.take = (incoming, outgoing) => {
      incoming.resume();
      outgoing.end('ok');
    };
    const socket = connect(stage.port, '127.0.0.1');
    const first = 'en=page_view\n'.repeat(1_500);
    const second = 'en=purchase\n';
    const length = first.length + second.length;
    const answered = new Promise((resolve) => socket.once('data', resolve));
    socket.write(
      `POST /g/collect HTTP/1.1\r\nHost: ${site.host}\r\nContent-Length: ${length}\r\n\r\n${first}`,
    );
    expect(String(await answered)).toMatch(/^HTTP\/1\.1 200/);
    expect((await stage.seen()).records).toEqual([]);
    socket.end(second);
    expect(await recorded()).toMatchObject([{ status: 200, events: { page_view: 1_500, purchase: 1 } }]);
  });

  test('of a small body that doesn’t arrive completely don’t reach the tag server', async () => {
    const socket = connect(stage.port, '127.0.0.1');
    const head = `POST /g/collect?en=first HTTP/1.1\r\nHost: ${site.host}\r\nContent-Length: 99\r\n\r\n`;
    socket.write(`${head}en=page_view\nen=pur`, () => socket.end());
    socket.resume();
    expect(await recorded()).toMatchObject([{ error: 'upstream_failed', events: { first: 1 } }]);
    expect(stage.upstream.received).toEqual([]);
  });

  test('of a request that its client aborts are recorded as far as they were passed on', async () => {
    const socket = connect(stage.port, '127.0.0.1');
    socket.write(
      `POST /g/collect HTTP/1.1\r\nHost: ${site.host}\r\nContent-Length: 99999\r\n\r\nen=page_view\nen=pur`,
    );
    stage.upstream.take = (incoming) => {
      incoming.on('error', () => undefined).resume();
      socket.destroy();
    };
    const [record] = await recorded();
    expect(record?.events).toMatchObject({ page_view: 1 });
  });

  test('that can’t be delivered to the tag server are recorded nevertheless', async () => {
    stage.upstream.take = (incoming) => incoming.socket.destroy();
    const record = await recordOf('/g/collect?en=first', post('en=page_view\n'.repeat(4)));
    expect(record).toMatchObject({ status: 502, error: 'upstream_failed', events: { first: 1 } });
  });
});

describe('a probe of our own', () => {
  const mark = (fields = {}, secret = HOP_SECRET, at = Date.now()) =>
    hostProbeMark(secret, { edge: site.host, path: '/healthy', ...fields }, at);
  const probe = async (value: string, path = '/healthy') =>
    (await recordOf(path, { headers: { 'x-tagyard-probe': value } })).probe;

  test('is marked for one request: its mark can’t be used again, nor with another method', async () => {
    const seen = mark();
    expect(await probe(seen)).toBe(true);
    expect(await probe(seen)).toBe(false);
    const unused = { headers: { 'x-tagyard-probe': mark() } };
    expect((await recordOf('/healthy', { ...post('x'), ...unused })).probe).toBe(false);
    expect((await recordOf('/healthy', unused)).probe).toBe(true);
    const once = mark();
    const both = await Promise.all(
      [1, 2].map(() => stage.send(site.host, '/healthy', { headers: { 'x-tagyard-probe': once } })),
    );
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
    expect((await recorded(2)).map(({ probe: own }) => own).sort()).toEqual([false, true]);
  });

  test('is each request by which a host asks the edge about itself or about a site', async () => {
    const lookup = nodeLookup({ addresses: async () => ['127.0.0.1'], alias: async () => null });
    const edgePublicUrl = `http://{host}:${stage.port}`;
    const asks = { hopSecret: HOP_SECRET, lookup };
    const url = new URL(edgePublicUrl.replace('{host}', site.host));
    expect(await checkEdge(url, asks)).toMatchObject({ status: 'passed' });
    const manifest = {
      hostnames: { edge: site.host, origin: 'origin', preview: 'preview' },
      loaderToken: site.loader,
      serving: true,
    };
    expect(await askEdge(manifest, { ...asks, edgePublicUrl })).toMatchObject({ served: true });
    expect((await recorded(2)).map(({ route, status, probe: own }) => [route, status, own])).toEqual([
      ['', 404, true],
      ['/l/:token.js', 200, true],
    ]);
  });

  test('is marked for its path and for some minutes; the tag server doesn’t get the mark', async () => {
    expect(await probe(mark())).toBe(true);
    expect(await probe(mark(), '/healthy?cached=no')).toBe(true);
    expect(stage.upstream.received[0]?.headers).not.toHaveProperty('x-tagyard-probe');
    expect(await probe(mark({}, HOP_SECRET, Date.now() + 60_000))).toBe(true);
    expect(await probe(mark({}, HOP_SECRET, Date.now() - 60_000))).toBe(true);
  });

  test.each([
    ['another secret', () => mark({}, 'guessed')],
    ['another site', () => mark({ edge: 'site99.edge.test' })],
    ['another path', () => mark({ path: '/g/collect' })],
    ['an old one', () => mark({}, HOP_SECRET, Date.now() - 180_000)],
    ['one of the future', () => mark({}, HOP_SECRET, Date.now() + 180_000)],
    [
      'an old one with another minute',
      () => mark({}, HOP_SECRET, 0).replace(/^0-/, `${mark().split('-')[0]}-`),
    ],
    ['one with another random part', () => mark().replace(/-[0-9a-f]{32}-/, `-${'0'.repeat(32)}-`)],
    ['a shorter one', () => mark().slice(0, -1)],
    ['a longer one', () => `${mark()}0`],
    ['the secret', () => HOP_SECRET],
    ['true', () => 'true'],
    ['nothing', () => ''],
  ])('isn’t recognised if the mark is wrong: %s', async (_what, value) => {
    expect(await probe(value())).toBe(false);
  });
});

describe('a record', () => {
  test.each([
    ['G111', 'all'],
    ['G110', 'ads'],
    ['G101', 'analytics'],
    ['G100', 'none'],
    ['G1--', null],
    ['G1', null],
    ['erika', null],
  ])('has the consent that a hit states: %s is %s', async (gcs, consent) => {
    expect((await recordOf(`/g/collect?v=2&gcs=${gcs}&en=x`)).consent).toBe(consent);
  });

  test('has the consent that applies to a bootstrap, and none for a health check', async () => {
    const required = await stage.site({ consent: 'required' });
    const granted = { analytics_storage: 'granted', ad_storage: 'denied' };
    await stage.boot(required);
    await stage.boot(required, { consent: granted });
    await stage.boot(required, { consent: granted }, { 'sec-gpc': '1' });
    await stage.boot(site);
    await stage.send(site.host, '/healthy', { headers: { 'sec-gpc': '1' } });
    expect((await recorded(5)).map(({ consent }) => consent)).toEqual([
      'none',
      'analytics',
      'none',
      'all',
      null,
    ]);
  });

  test('of a request whose answer sets a kept cookie has no consent if the request states none', async () => {
    const keeping = await stage.site({ features: { cookie_restoration: true } });
    stage.upstream.reply = () => ({ headers: { 'set-cookie': 'FPLC=abc; Path=/; Secure' } });
    const headers = { cookie: `_fpid=${'a'.repeat(32)}` };
    expect((await recordOf('/mp/collect', { headers }, keeping.host)).consent).toBeNull();
  });

  test('says whether a bot asked, on every route', async () => {
    const robot = { headers: { 'user-agent': 'Mozilla/5.0 (compatible; Googlebot/2.1)' } };
    const browser = {
      headers: { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0.0.0 Safari/537.36' },
    };
    for (const path of ['/nothing', '/g/collect', `/l/${site.loader}.js`]) {
      expect((await recordOf(path, robot)).bot).toBe(true);
      expect((await recordOf(path, browser)).bot).toBe(false);
    }
  });

  test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD'])(
    'has the method %s',
    async (method) => {
      expect((await recordOf('/nothing', { method })).method).toBe(method);
    },
  );

  test.each(['PROPFIND', 'REPORT'])('has any other method as “other”: %s', async (method) => {
    expect((await recordOf('/nothing', { method })).method).toBe('other');
  });

  test('has the sizes of the bodies, where the headers state them', async () => {
    const get = await stage.send(site.host, `/l/${site.loader}.js`);
    await stage.send(site.host, `/l/${site.loader}.js`, { method: 'HEAD' });
    const headers = { 'if-none-match': String(get.headers.etag) };
    await stage.send(site.host, `/l/${site.loader}.js`, { headers });
    const boot = await stage.boot(site, { cookies: { _ga: 'größe' } });
    const [loader, head, unchanged, booted] = await recorded(4);
    expect(loader).toMatchObject({ bytesIn: 0, bytesOut: Buffer.byteLength(get.text) });
    expect(head).toMatchObject({ bytesIn: 0, bytesOut: 0 });
    expect(unchanged).toMatchObject({ status: 304, bytesIn: 0, bytesOut: 0 });
    expect(booted?.bytesIn).toBeGreaterThan(100);
    expect(booted?.bytesOut).toBe(Buffer.byteLength(boot.text));

    const features = { 'größe 你好 👋': true };
    const foreign = await stage.boot(await stage.site({ features }));
    expect(foreign.json.features).toEqual(features);
    expect((await recorded(1))[0]?.bytesOut).toBe(Buffer.byteLength(foreign.text));

    stage.upstream.reply = () => ({ headers: { 'content-length': '5' }, body: 'hello' });
    expect(await recordOf('/healthy', post('four'))).toMatchObject({ bytesIn: 4, bytesOut: 5 });
    stage.upstream.take = (_incoming, outgoing) => {
      outgoing.write('of no ');
      outgoing.end('stated length');
    };
    expect((await recordOf('/healthy')).bytesOut).toBeNull();
  });

  test('has the web container’s version as the script says it, from every copy', async () => {
    const script = (version: string) => ({
      headers: { 'content-type': 'application/javascript', 'cache-control': 'private, max-age=900' },
      body: `// Copyright\n(function(){\nvar data = {\n"resource": {\n  "version":"${version}",\n  "macros":[]}}})();`,
    });
    const path = `/c/${site.domains[0]?.token}.js`;
    stage.upstream.reply = () => script('35');
    const { body } = script('35');
    expect(await recordOf(path)).toMatchObject({ webContainerVersion: '35', bytesOut: body.length });
    expect(await recordOf(path)).toMatchObject({ webContainerVersion: '35', cache: 'hit' });
    await stage.restart();
    expect(await recordOf(path)).toMatchObject({ webContainerVersion: '35', cache: 'hit' });
    await stage.forward(901_000);
    stage.upstream.reply = () => script('36');
    await eventually(async () => {
      expect(await recordOf(path)).toMatchObject({ webContainerVersion: '36', cache: 'hit' });
    });
    const other = await stage.site();
    stage.upstream.reply = () => script('erika');
    expect(
      (await recordOf(`/c/${other.domains[0]?.token}.js`, {}, other.host)).webContainerVersion,
    ).toBeNull();
    expect((await recordOf('/healthy')).webContainerVersion).toBeNull();
  });

  test('has only the known names of signals; the tag server gets the signals as they are', async () => {
    const session = { id: 'b'.repeat(32) };
    const signals = { adblock: true, itp: false, erika_mustermann: false, t0ken: true };
    const body = JSON.stringify({ loader: site.loader, session, signals });
    const origin = `https://www.${site.domains[0]?.domain}`;
    const record = await recordOf('/mark-session-detection', post(body, { origin }));
    expect(record.signals).toEqual({ adblock: true, itp: false, other: true });
    await eventually(() => {
      expect(JSON.parse(stage.upstream.received[0]?.body ?? '{}').signals).toEqual(signals);
    });
  });
});

describe('what a stranger sends is in no store', () => {
  const SECRETS = [
    'Erika',
    'Mustermann',
    'geheim',
    '4111111111111111',
    'eyJhbGci',
    '0123456789abcdef0123456789abcdef',
  ];
  const text = `${SECRETS.join('.')}`;
  const encoded = encodeURIComponent(`${text}@example.org`);

  test('whichever field it was sent in', async () => {
    const prefixed = await stage.site({ features: { cookie_restoration: true, multi_domain: true } });
    const { host, loader, domains } = prefixed;
    const origin = `https://www.${domains[0]?.domain}`;
    const headers: Record<string, string> = {
      'x-request-id': text,
      'trace-id': text,
      traceparent: `00-${SECRETS.at(-1)}-0123456789abcdef-01`,
      'x-tagyard-probe': text,
      'x-tagyard-request-id': text,
      'user-agent': `Mozilla/5.0 ${text}`,
      referer: `https://www.example.org/${text}?m=${encoded}`,
      cookie: `_ga=${text}; session=${text}`,
      'cf-connecting-ip': '203.0.113.77',
      'x-forwarded-for': '203.0.113.77',
      'x-forwarded-country': text,
      'accept-language': text,
      authorization: `Bearer ${text}`,
      [`x-${SECRETS[0]}`]: text,
    };
    const query = `?v=2&tid=G-1&cid=${encoded}&en=${encoded}&ep.name=${encoded}&gcs=${encoded}&dl=${encoded}`;
    const line = `en=${encoded}&ep.mail=${encoded}&en=${text}`;
    const requests: [string, Sending][] = [
      [`/g/collect${query}`, { headers }],
      [`/g/collect${query}`, { headers, method: 'POST', body: `${line}\r\n${line}\nen= ${text}\n${text}` }],
      [`/${encoded}${query}`, { headers }],
      [`/${encoded}/g/collect${query}`, { headers, method: 'POST', body: line }],
      [`/l/${text}.js${query}`, { headers }],
      [`/c/${text}.js${query}`, { headers }],
      [`/l/${loader}.js${query}`, { headers }],
      [`/c/${domains[0]?.token}.js${query}&l=${SECRETS[0]}`, { headers }],
      [
        '/boot',
        { headers: { ...headers, origin: `https://${SECRETS[0]}.example` }, method: 'POST', body: text },
      ],
      ['/boot', { headers, method: 'PROPPATCH', body: text }],
      [
        '/mark-session-detection',
        {
          headers: { ...headers, origin },
          method: 'POST',
          body: JSON.stringify({
            loader,
            session: { id: SECRETS.at(-1) },
            signals: { erika: true, mustermann: true, geheim: false },
            consent: { analytics_storage: 'denied' },
          }),
        },
      ],
    ];
    const boot = { cookies: { _ga: text, [`${SECRETS[0]}`]: text }, url: `${origin}/${text}`, title: text };
    const send = async () => {
      for (const [path, sending] of requests) await stage.send(host, path, sending);
      await stage.boot(prefixed, boot, headers);
    };
    await send();
    // The same while the tag server, the vendor and a store fail.
    stage.upstream.reply = () => Promise.reject(new Error('down'));
    await stage.fault('COOKIES', 'fail');
    await send();
    await stage.fault('COOKIES', null);

    const wanted = 2 * (requests.length + 1);
    const records: RequestRecord[] = [];
    const events: unknown[] = [];
    await eventually(async () => {
      const seen = await stage.seen();
      records.push(...seen.records);
      // Writes are searched by their keys only: the values are the visitor's own data, stored with consent.
      events.push(...seen.events, ...seen.writes);
      expect(records).toHaveLength(wanted);
    });
    const ids = records.map(({ requestId }) => requestId);
    await eventually(
      async () => {
        const archived = Object.values(await stage.rawLogs()).flat();
        expect(archived.filter(({ requestId }) => ids.includes(requestId))).toHaveLength(wanted);
      },
      { timeoutMs: 20_000 },
    );
    const raw = await stage.rawLogs();
    const own = Object.values(raw).flatMap((all) => all.filter(({ requestId }) => ids.includes(requestId)));
    const everything = JSON.stringify([Object.keys(raw), own, records, records.map(dataPoint), events]);
    for (const secret of [...SECRETS, '203.0.113.77', 'example.org', 'PROPPATCH']) {
      expect(everything.toLowerCase()).not.toContain(secret.toLowerCase());
    }
    // The events are counted nevertheless.
    expect(own.some(({ events: { other = 0 } }) => other > 2)).toBe(true);
  });
});

describe('deliveries to management', () => {
  test('have each line of the archive; a failure is counted and fails nothing', async () => {
    const received: { authorization: string | undefined; lines: string[] }[] = [];
    stage.upstream.reply = ({ url, headers: { authorization }, body }) => {
      if (!url.endsWith('/ingest')) return {};
      received.push({ authorization, lines: body.split('\n').filter((line) => line !== '') });
      return { status: 202 };
    };
    await stage.ingestTo('https://management.test/ingest', 'the-ingest-secret');
    const record = await recordOf('/healthy');
    await eventually(
      () => {
        expect(received).toHaveLength(1);
      },
      { timeoutMs: 10_000 },
    );
    const archived = Object.values(await stage.rawLogs()).flat();
    const [line] = archived.filter(({ requestId }) => requestId === record.requestId);
    expect(received[0]?.authorization).toBe('Bearer the-ingest-secret');
    expect(received[0]?.lines.map((text) => JSON.parse(text))).toContainEqual(line);

    const id = crypto.randomUUID();
    const batch = { id, records: [record, record] };
    for (const [fail, error] of [
      [() => ({ status: 503 }), 'Error: status 503'],
      [() => Promise.reject(new Error('down')), expect.any(String)],
      [() => new Promise<never>(() => undefined), expect.stringMatching(/timeout/i)],
    ] as const) {
      stage.upstream.reply = fail;
      await stage.seen();
      expect(await stage.deliver(batch)).toBeUndefined();
      expect((await stage.seen()).events).toContainEqual({
        event: 'ingest_lost',
        fields: { records: 2, error },
      });
    }
    const lines = Object.entries(await stage.rawLogs()).filter(([key]) => key.includes(id));
    expect(lines.map(([, own]) => own.map(({ batch: of, index }) => [of, index]))).toEqual([
      [
        [id, 0],
        [id, 1],
      ],
    ]);

    // A batch that the archive refuses isn't sent to management: the queue delivers it again, and it is sent then.
    received.length = 0;
    await stage.fault('RAW_LOGS', 'fail');
    expect(await stage.deliver(batch)).toBe(1);
    expect(received).toEqual([]);
    await stage.fault('RAW_LOGS', null);
  });
});
