import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns';
import { once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { lookupDnsFirst } from '../../../../sites/local/demo/tag-server/lookup.ts';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

const REFUSED = 5;
const NO_SUCH_NAME = 3;

/** A name server on loopback that answers each A query with this address, or each query with this status. */
async function resolverOf(answer: string | number): Promise<Resolver> {
  const socket = createSocket('udp4');
  closing.push(() => socket.close());
  socket.on('message', (query, { port, address }) => {
    // RFC 1035 4.1: the id, flags, four counts; then the question, which the answer repeats.
    const end = query.indexOf(0, 12) + 5;
    const isA = query.readUInt16BE(end - 4) === 1;
    const record = typeof answer === 'string' && isA ? addressRecord(answer) : Buffer.alloc(0);
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(0x8180 + (typeof answer === 'number' ? answer : 0), 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(record.length > 0 ? 1 : 0, 6);
    socket.send(Buffer.concat([header, query.subarray(12, end), record]), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const resolver = new Resolver({ timeout: 1000, tries: 1 });
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  return resolver;
}

/** A pointer to the question's name, type A, class IN, 60 s, four octets. */
function addressRecord(address: string): Buffer {
  return Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split('.').map(Number)]);
}

async function resolve(dns: Resolver, name: string, all: boolean): Promise<unknown> {
  const { promise, resolve: settle } = Promise.withResolvers<unknown>();
  lookupDnsFirst(dns)(name, { all }, (error, address) => settle(error ?? address));
  return await promise;
}

describe('the stand-in resolves names as the image’s HTTP agents do (docs/facts.md, Start and run)', () => {
  test.each([false, true])('DNS wins over the hosts file (all: %j)', async (all) => {
    const dns = await resolverOf('192.0.2.7');
    // Every hosts file has `localhost`.
    const expected = all ? [{ address: '192.0.2.7', family: 4 }] : '192.0.2.7';
    expect(await resolve(dns, 'localhost', all)).toEqual(expected);
  });

  test('the hosts file counts where DNS has no such name', async () => {
    const found = await resolve(await resolverOf(NO_SUCH_NAME), 'localhost', false);
    expect(['127.0.0.1', '::1']).toContain(found);
  });

  test('a name server that fails makes the name unknown, whatever the hosts file has', async () => {
    expect(await resolve(await resolverOf(REFUSED), 'localhost', false)).toMatchObject({ code: 'EREFUSED' });
  });

  test('a name under .localhost is loopback if its name server fails', async () => {
    expect(await resolve(await resolverOf(REFUSED), 'shop.localhost', false)).toBe('127.0.0.1');
  });
});
