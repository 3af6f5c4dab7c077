import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { expect } from 'vitest';
import type { Upstream } from '../../../edge/kit/upstream.ts';

/**
 * Sends one POST through the edge and writes each chunk only after the previous one has arrived at the other end. Never
 * finishes if the edge buffers a body.
 */
export async function exchangeInPieces(upstream: Upstream, port: number, host: string): Promise<void> {
  const atUpstream = Promise.withResolvers<[IncomingMessage, ServerResponse]>();
  const answered = Promise.withResolvers<IncomingMessage>();
  upstream.take = (...pair) => atUpstream.resolve(pair);
  const asking = request({ host: '127.0.0.1', port, path: '/mp/collect', method: 'POST', headers: { host } });
  asking.on('response', answered.resolve).on('error', answered.reject);
  try {
    asking.write('sent 1');
    const [incoming, outgoing] = await atUpstream.promise;
    const sent = incoming[Symbol.asyncIterator]();
    expect(String((await sent.next()).value)).toBe('sent 1');
    asking.write('sent 2');
    expect(String((await sent.next()).value)).toBe('sent 2');
    asking.end();
    expect((await sent.next()).done).toBe(true);

    outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).write('answered 1');
    const got = (await answered.promise)[Symbol.asyncIterator]();
    expect(String((await got.next()).value)).toBe('answered 1');
    outgoing.write('answered 2');
    expect(String((await got.next()).value)).toBe('answered 2');
    outgoing.end();
    expect((await got.next()).done).toBe(true);
  } finally {
    upstream.take = undefined;
    asking.destroy();
  }
}
