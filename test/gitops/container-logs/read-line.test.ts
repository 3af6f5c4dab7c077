import { describe, expect, test } from 'vitest';
import { readLine } from '../../../gitops/container-logs/read-line.ts';

const TRACE = '0b1f7f5e-6f0e-4f0c-9a52-3a3d0c8f2d11';
const PERSONAL = [
  'ada@example.com',
  'ada%40example.com',
  '203.0.113.7',
  '2001:db8::7',
  '+49 170 1234567',
  'GA1.1.123456789.987654321',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl',
  'EAABsbCS1iHgBAKZCx0',
  '"Ada Lovelace"',
  "'Ada Lovelace'",
];

/** What is kept of a line, without the members that are `null`. */
const kept = (line: string | object, stream: 'stdout' | 'stderr' = 'stdout') => {
  const read = readLine(typeof line === 'string' ? line : JSON.stringify(line), stream, 'all');
  return read && Object.fromEntries(Object.entries(read).filter(([, value]) => value !== null));
};

test('a line in the shape that templates print is kept without bodies, headers and queries', () => {
  const shape = { Name: 'Facebook', TraceId: TRACE, EventName: 'purchase' };
  const request = {
    ...shape,
    Type: 'Request',
    RequestMethod: 'POST',
    RequestUrl: 'https://user:pw@graph.facebook.com/v18.0/123456789/events?access_token=EAAB#x',
    RequestBody: { em: 'ada@example.com' },
  };
  expect(kept(request)).toEqual({
    ...{ kind: 'tag', level: 'info', name: 'Facebook', type: 'Request', requestId: TRACE },
    ...{ eventName: 'purchase', requestMethod: 'POST' },
    requestUrl: 'https://graph.facebook.com/v18.0/*/events',
  });
  // The id is kept in lower case, as records of requests have it, because the search compares them.
  expect(kept({ ...request, TraceId: TRACE.toUpperCase() })).toEqual(kept(request));
  const response = {
    ...shape,
    Type: 'Response',
    ResponseStatusCode: 400,
    ResponseHeaders: { 'set-cookie': 'id=1' },
    ResponseBody: 'Ada',
  };
  expect(kept(response)).toEqual({
    ...{ kind: 'tag', level: 'warning', name: 'Facebook', type: 'Response', requestId: TRACE },
    ...{ eventName: 'purchase', responseStatusCode: 400 },
  });
  expect(kept({ ...shape, Type: 'Message', Message: 'Not sent', Reason: 'no consent' })).toMatchObject({
    message: 'Not sent; no consent',
  });
});

describe.each(PERSONAL)('%s', (personal) => {
  test('is kept in no member and in no text', () => {
    const members = [
      'Name',
      'Type',
      'TraceId',
      'EventName',
      'RequestMethod',
      'RequestUrl',
      'Message',
      'Reason',
    ];
    const others = ['RequestBody', 'ResponseBody', 'ResponseHeaders', 'body', 'user_data', personal];
    const lines = [
      ...members.map((name) =>
        JSON.stringify({ Name: 'X', Type: 'Message', TraceId: TRACE, [name]: personal }),
      ),
      ...members.map((name) => JSON.stringify({ Name: 'X', Type: 'Message', [name]: { deep: [personal] } })),
      ...others.map((name) =>
        JSON.stringify({ Name: 'X', Type: 'Message', TraceId: TRACE, [name]: personal }),
      ),
      JSON.stringify({ Name: 'X', RequestUrl: `https://${personal}/${personal}/x?q=${personal}` }),
      JSON.stringify({ unknown: personal }),
      JSON.stringify({ unknown: personal }, null, 2),
      JSON.stringify({ Name: 'X', RequestBody: personal }).slice(0, -1),
      `the visitor ${personal} was seen`,
      `visitor=${personal}`,
      `email: ${personal}`,
      `fetch https://api.example.com/users/${personal}?id=${personal} failed`,
      `x${'y '.repeat(505)}${personal}`,
      `set_cookies was rejected by the policy for ${personal}`,
    ].flatMap((text) => text.split('\n'));
    const bare = personal.replaceAll(/["']/g, '');
    for (const line of lines) {
      const text = JSON.stringify(kept(line));
      expect(text).not.toContain(bare);
      if (bare.startsWith('Ada')) expect(text).not.toContain('Lovelace');
    }
  });
});

test('what doesn’t have the form of a trace id or a name is not kept as one', () => {
  const line = { Name: 'X', TraceId: 'ada', EventName: 'Ada Lovelace', RequestMethod: 'ADA', Type: 'Ada' };
  expect(kept(line)).toEqual({
    ...{ kind: 'tag', level: 'info', name: 'X' },
    ...{ eventName: 'other', requestMethod: 'other', type: 'other' },
  });
});

test('plain lines keep their words, and those of stderr have the level error', () => {
  for (const text of [
    'Tag server (processing) listens on port 8080.',
    'at processTicksAndRejections (node:internal/process/task_queues:105:5)',
    'Error: getaddrinfo ENOTFOUND www.googletagmanager.com',
    "The container can't be fetched: https://www.googletagmanager.com/server.js answered 404",
    'Container GTM-ABC1234 loaded',
  ]) {
    expect(kept(text)).toEqual({ kind: 'text', level: 'info', message: text });
    expect(kept(text, 'stderr')).toEqual({ kind: 'text', level: 'error', message: text });
    expect(readLine(text, 'stdout', 'json')).toBeNull();
  }
  expect(kept(' ')).toBeNull();
});

test('a refusal of the policy script is recognised, whatever is kept of plain lines', () => {
  const line = 'Template refused: GA4 client, set_cookies FPID: the policy rejected it';
  const refusal = { kind: 'refusal', level: 'error', permission: 'set_cookies', name: 'GA4 client' };
  expect(readLine(line, 'stderr', 'json')).toMatchObject(refusal);
  expect(kept({ Name: 'X', Type: 'Message', Message: 'send_http is prohibited' })).toMatchObject({
    ...{ kind: 'refusal', permission: 'send_http', name: 'X' },
  });
  expect(kept('set_cookies was called')).toMatchObject({ kind: 'text' });
});

test('a text of one long word is kept as [data], not as an empty line', () => {
  const data = JSON.stringify({ client: 'x'.repeat(2_000) });
  expect(kept(data)).toEqual({ kind: 'text', level: 'info', message: '[data]' });
  expect(kept({ Name: 'GA4', Message: data })).toMatchObject({ message: '[data]' });
  expect(kept(`sent ${data}`)).toMatchObject({ message: 'sent' });
});
