import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { connectEmbedded } from '../../../management/db/connect.ts';
import { listenOnPostgres } from '../../../management/db/listen.ts';

/** A message of PostgreSQL's protocol. */
function message(type: string, ...parts: readonly (string | number)[]): Buffer {
  const body = Buffer.concat(
    parts.map((part) => {
      if (typeof part === 'string') return Buffer.from(`${part}\0`);
      const number = Buffer.alloc(4);
      number.writeInt32BE(part);
      return number;
    }),
  );
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}

const READY = Buffer.from('Z\0\0\0\u0005I');
const noticeOf = (text: string) => message('A', 1, 'tagyard', text);

test('listening has begun before the first notice, also if the server sends one with its answer', async () => {
  const connected = Promise.withResolvers<Socket>();
  let listener: Socket | undefined;
  const server = createServer((socket) => {
    let isStarted = false;
    socket.on('data', (sent) => {
      if (!isStarted) socket.write(Buffer.concat([message('R', 0), READY]));
      else if (sent.toString('latin1', 0, 1) === 'Q') {
        const proof = /notify tagyard, '([^']*)'/.exec(sent.toString('latin1'))?.[1];
        if (proof === undefined) listener = socket;
        // The first notice comes with that which proves that notices are delivered.
        else listener?.write(Buffer.concat([noticeOf(proof), noticeOf('early')]));
        socket.write(
          Buffer.concat([message('C', 'LISTEN'), READY, ...(proof === undefined ? [noticeOf('early')] : [])]),
        );
        if (listener !== undefined) connected.resolve(listener);
      }
      isStarted = true;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = new AbortController();
  const calls: string[] = [];
  const begun = Promise.withResolvers<void>();
  const late = Promise.withResolvers<void>();
  const { port } = server.address() as AddressInfo; // listening on TCP
  const listening = listenOnPostgres(`postgres://api@127.0.0.1:${port}/api`, late.reject)(
    connectEmbedded(), // not used
    {
      onNotice: (notice) => {
        calls.push(notice);
        if (notice === 'late') late.resolve();
      },
      onListening: () => {
        calls.push('listening');
        begun.resolve();
      },
    },
    stop.signal,
  );
  await begun.promise;
  (await connected.promise).write(noticeOf('late'));
  await late.promise;
  expect(calls[0]).toBe('listening');
  stop.abort();
  await listening;
  server.close();
});
