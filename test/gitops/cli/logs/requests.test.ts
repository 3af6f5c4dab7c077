import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { liveRows, pastRequests } from '../../../../gitops/cli/logs/requests.ts';

type Answer = Readonly<{ status: number; type: string; body: string }>;

let close = () => {};
afterEach(() => close());

/** A server that answers its requests with `answers`, one after the other. */
async function serve(answers: readonly Answer[]) {
  const seen: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    const { status, type, body } = answers[seen.length] as Answer;
    seen.push(request.headers['last-event-id'] as string | undefined);
    response.writeHead(status, { 'content-type': type }).end(body);
  }).listen(0, '127.0.0.1');
  close = () => server.close();
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // a TCP server's address is never a string
  return {
    seen,
    access: { url: `http://127.0.0.1:${port}`, token: async () => 't', container: 'c', retryMs: 1 },
  };
}

const stream = (id: string): Answer => ({
  status: 200,
  type: 'text/event-stream',
  body: `id: ${id}\nevent: request\ndata: {"requestId":"${id}"}\n\n`,
});
const outage = (status: number): Answer => ({ status, type: 'text/html', body: 'no API behind this proxy' });

test('a stream continues after its last row, also if a proxy before the API answers meanwhile', async () => {
  const { seen, access } = await serve([stream('1'), outage(502), outage(522), outage(429), stream('2')]);
  const rows = liveRows(access, { path: 'requests/live', row: 'request' }, {}, undefined);
  expect((await rows.next()).value).toEqual({ requestId: '1' });
  expect((await rows.next()).value).toEqual({ requestId: '2' });
  expect(seen).toEqual([undefined, '1', '1', '1', '1']);
  await rows.return(undefined);
});

test('an interruption before the first row is reported as a gap of unknown size', async () => {
  const silent: Answer = { status: 200, type: 'text/event-stream', body: 'retry: 2000\n\n' };
  const { access } = await serve([silent, outage(503), stream('1')]);
  const rows = liveRows(access, { path: 'requests/live', row: 'request' }, {}, undefined);
  expect((await rows.next()).value).toEqual({ missed: null });
  expect((await rows.next()).value).toEqual({ requestId: '1' });
  await rows.return(undefined);
});

test('a stream that has never begun ends with what the proxy answers', async () => {
  const { access } = await serve([outage(502)]);
  const rows = liveRows(access, { path: 'requests/live', row: 'request' }, {}, undefined);
  await expect(rows.next()).rejects.toThrow('502');
});

test('at most 10,000 requests of the past are returned, the newest ones, whatever the sizes of their pages', async () => {
  const page = (first: number): Answer => ({
    status: 200,
    type: 'application/json',
    body: JSON.stringify({
      requests: Array.from({ length: 900 }, (_, index) => ({ requestId: String(first - index) })),
      missing: [],
      next: 'older',
    }),
  });
  const { access } = await serve(Array.from({ length: 12 }, (_, index) => page(20_000 - index * 900)));
  const { requests, isCut } = await pastRequests(access, {});
  expect([requests.length, requests.at(-1)?.requestId, isCut]).toEqual([10_000, '20000', true]);
});
