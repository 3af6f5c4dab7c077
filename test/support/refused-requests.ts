import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';

/** Bytes that Node's HTTP server or Fastify's router refuses before any route: what they are, the status, and the code. */
export const REFUSED_REQUESTS = [
  ['a line that is no request line', 'GARBAGE\r\n\r\n', 400, 'malformed'],
  ['an unknown method', 'FOO / HTTP/1.1\r\nhost: a\r\n\r\n', 400, 'malformed'],
  [
    'two framings of one body',
    'POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    400,
    'malformed',
  ],
  ['HTTP/1.1 without a Host', 'GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n', 400, 'malformed'],
  [
    'headers that are too large',
    `GET / HTTP/1.1\r\nhost: a\r\nx-long: ${'x'.repeat(100_000)}\r\n\r\n`,
    431,
    'headers_too_large',
  ],
  ['an address that is too long', `GET /${'x'.repeat(100_000)} HTTP/1.1\r\n\r\n`, 431, 'headers_too_large'],
  [
    'an expectation that no server meets',
    'GET /healthz HTTP/1.1\r\nhost: a\r\nexpect: 200-maybe\r\nconnection: close\r\n\r\n',
    417,
    'expectation_failed',
  ],
] as const;

/**
 * Sends the bytes on a connection of their own, and reads the one answer until the server closes it. The status is
 * `NaN` if there is none within `waitMs`.
 */
export async function sendBytes(url: string, bytes: string, { waitMs }: { readonly waitMs?: number } = {}) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.write(bytes);
  if (waitMs !== undefined) socket.setTimeout(waitMs, () => socket.push(null));
  const answer = await text(socket);
  socket.destroy();
  const [head = '', body = ''] = answer.split('\r\n\r\n', 2);
  const [statusLine = '', ...fields] = head.split('\r\n');
  const headers = Object.fromEntries(
    fields.map((field) => {
      const [name = '', value = ''] = field.split(/: ?(.*)/);
      return [name.toLowerCase(), value];
    }),
  );
  return { status: Number(statusLine.split(' ')[1]), headers, body };
}
