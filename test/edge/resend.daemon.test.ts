import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { RequestRecord } from '../../edge/logs/request-record.ts';
import { type Egress, startEgress } from '../../sites/local/egress.ts';
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
afterAll(() => stage?.close());

async function recordOf(path: string, sending?: Sending, host = site.host): Promise<RequestRecord> {
  await stage.send(host, path, sending);
  const records: RequestRecord[] = [];
  await eventually(async () => {
    records.push(...(await stage.seen()).records);
    expect(records).toHaveLength(1);
  });
  const [record] = records;
  if (record === undefined) throw new Error('no record');
  return record;
}

const post = (body: string): Sending => ({ method: 'POST', body });
const HIT = post('en=page_view\nen=scroll\n');
/** Larger than a body that is read as a whole. */
const LARGE = post('en=page_view\n'.repeat(2_000));

describe('a tag server at two addresses', () => {
  /** On `SILENT`, nothing listens; on `LISTENING`, the tag server. Each connection uses the next of `addresses`. */
  const SILENT = '127.0.0.2';
  const LISTENING = '127.0.0.1';
  const addresses: string[] = [];
  const bodies: string[] = [];
  let egress: Egress;
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = await incoming.toArray();
    bodies.push(Buffer.concat(chunks).toString());
    // Closes the connection, so that each request makes a new one.
    outgoing.writeHead(200, { connection: 'close' }).end('counted');
  });
  /** Sends the worker's fetches through the egress of the embedded edge, which connects and answers as Cloudflare does. */
  const throughEgress = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method, headers, url: path } = incoming;
    const on = request({ host: egress.host, port: egress.port, path, method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
      void pipeline(answer, outgoing);
    });
    void pipeline(incoming, on);
  };
  let host: string;

  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, LISTENING, resolve));
    egress = await startEgress({
      resolve: () => {
        const [address = SILENT] = addresses.splice(0, 1);
        return address;
      },
      ca: [],
    });
    const { port } = server.address() as AddressInfo; // a TCP server has one
    const staged = await stage.site();
    ({ host } = staged);
    await stage.put('ROUTES', host, {
      version: 1,
      siteId: staged.id,
      containerId: staged.container,
      origin: `http://tag-server.test:${port}`,
    });
  });
  beforeEach(() => {
    bodies.length = 0;
    stage.upstream.take = throughEgress;
  });
  afterAll(async () => {
    await egress?.close();
    await new Promise((resolve) => server.close(resolve));
  });

  test.each([
    ['a hit', '/g/collect?v=2', HIT],
    ['another POST', '/mp/collect', post('{"event":"order"}')],
    ['a hit without a body', '/g/collect?v=2&en=a', post('')],
    ['a GET', '/g/collect?v=2&en=a', {}],
  ])('gets %s once, if the first address refuses the connection', async (_name, path, sending: Sending) => {
    addresses.splice(0, 2, SILENT, LISTENING);
    const record = await recordOf(path, sending, host);
    expect(record).toMatchObject({ status: 200, error: null, cause: 'sent again after status 521' });
    expect(bodies).toEqual([sending.body ?? '']);
  });

  test('causes the platform’s own answer if it refuses two connections', async () => {
    addresses.splice(0, 3, SILENT, SILENT, LISTENING);
    expect(await recordOf('/g/collect?v=2', HIT, host)).toMatchObject({ status: 521 });
    expect(addresses.splice(0)).toEqual([LISTENING]);
  });

  test('gets a large body only if the first connection is made: a stream can’t be read again', async () => {
    addresses.splice(0, 2, SILENT, LISTENING);
    expect(await recordOf('/g/collect?v=2', LARGE, host)).toMatchObject({ status: 521, cause: 'status 521' });
    expect(addresses.splice(0)).toEqual([LISTENING]);
    expect(bodies).toEqual([]);
  });
});

describe('a failed request', () => {
  const answering = (...statuses: number[]) => {
    stage.upstream.reply = () => ({ status: statuses.splice(0, 1)[0] ?? 200 });
  };

  test.each([521, 522, 523, 525, 526])('is sent again if it got %i, whatever its method', async (status) => {
    answering(status);
    const record = await recordOf('/g/collect?v=2', HIT);
    expect(record).toMatchObject({ status: 200, cause: `sent again after status ${status}` });
    expect(record.events).toEqual({ page_view: 1, scroll: 1 });
    const [first, second] = stage.upstream.received;
    expect(second).toMatchObject({ body: HIT.body, headers: { 'x-tagyard-hop-secret': HOP_SECRET } });
    expect(second).toEqual(first);
    expect(stage.upstream.received).toHaveLength(2);
  });

  test.each([500, 502, 503, 520, 524, 530])(
    'is not sent again if it is a POST that got %i, because it may have arrived',
    async (status) => {
      answering(status);
      expect(await recordOf('/g/collect?v=2', HIT)).toMatchObject({
        status,
        cause: expect.stringMatching(new RegExp(`^status ${status}`)),
      });
      expect(stage.upstream.received).toHaveLength(1);
    },
  );

  test('is sent again if it is a GET that got 520, as after a connection that was cut', async () => {
    answering(520);
    expect(await recordOf('/g/collect?v=2')).toMatchObject({ cause: 'sent again after status 520' });
    expect(stage.upstream.received).toHaveLength(2);
  });

  test.each<[name: string, sending: Sending, again: boolean]>([
    ['a GET is sent again', {}, true],
    ['a HEAD is sent again', { method: 'HEAD' }, true],
    ['a POST is not', HIT, false],
    ['a DELETE is not', { method: 'DELETE' }, false],
  ])('after a lost connection: %s', async (_name, sending, again) => {
    let requests = 0;
    stage.upstream.take = (incoming, outgoing) => {
      requests += 1;
      if (requests === 1) incoming.socket.destroy();
      else outgoing.end('counted');
    };
    expect(await recordOf('/g/collect?v=2', sending)).toMatchObject(
      again
        ? { status: 200, error: null, cause: 'sent again after a lost connection' }
        : { status: 502, error: 'upstream_failed', cause: null },
    );
    expect(requests).toBe(again ? 2 : 1);
  });

  test('is not sent again if it failed after more than 20 seconds', async () => {
    stage.upstream.reply = async () => {
      await stage.forward(20_001);
      return { status: 522 };
    };
    expect(await recordOf('/g/collect?v=2')).toMatchObject({ status: 522, cause: 'status 522' });
    expect(stage.upstream.received).toHaveLength(1);
  });
});
