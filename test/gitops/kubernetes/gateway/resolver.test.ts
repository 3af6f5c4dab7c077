import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { connect } from 'node:net';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { answerTo, readQuery } from '../../../../gitops/kubernetes/gateway/dns-message.ts';
import { PeerResolver } from '../../../../gitops/kubernetes/gateway/resolver.ts';

describe('the resolver of pods', () => {
  let resolver: PeerResolver;
  let port: number;
  let client: Resolver;
  let answers: Record<string, readonly string[] | Promise<readonly string[]>>;

  beforeEach(async () => {
    answers = { 'sites/tag-a-processing': ['10.0.0.1', '10.0.0.2'], 'sites/none': [] };
    resolver = new PeerResolver((service) => {
      const found = answers[service];
      if (found === undefined) throw new Error('unknown');
      return found;
    });
    port = await resolver.listen(0);
    client = new Resolver({ timeout: 2_000, tries: 1 });
    client.setServers([`127.0.0.1:${port}`]);
  });
  afterEach(async () => await resolver.close());

  test('answers with all addresses, whatever the case of the name', async () => {
    const found = await client.resolve4('tag-A-processing.sites.PEERS', { ttl: true });
    expect(found).toEqual([
      { address: '10.0.0.1', ttl: 0 },
      { address: '10.0.0.2', ttl: 0 },
    ]);
  });

  test('answers over TCP what is too long for UDP', async () => {
    const many = Array.from({ length: 60 }, (_, index) => `10.0.1.${index}`);
    answers['sites/many'] = many;
    expect(await client.resolve4('many.sites.peers')).toEqual(many);
  });

  test.each([
    ['a service without pods', 'none.sites.peers', 'ENOTFOUND'],
    ['a service whose addresses can’t be read', 'unknown.sites.peers', 'ESERVFAIL'],
    ['a name of another zone', 'example.net', 'EREFUSED'],
    ['a name with more labels', 'x.none.sites.peers', 'EREFUSED'],
  ])('answers with an error for %s', async (_case, name, code) => {
    await expect(client.resolve4(name)).rejects.toMatchObject({ code });
  });

  test('has no IPv6 addresses, which is no error', async () => {
    await expect(client.resolve6('tag-a-processing.sites.peers')).rejects.toMatchObject({ code: 'ENODATA' });
  });

  test('waits for the first pod of a service, and answers other queries meanwhile', async () => {
    const late = Promise.withResolvers<readonly string[]>();
    answers['sites/late'] = late.promise;
    const asked = client.resolve4('late.sites.peers');
    const other = await client.resolve4('tag-a-processing.sites.peers');
    late.resolve(['10.0.0.9']);
    expect([await asked, other]).toEqual([['10.0.0.9'], ['10.0.0.1', '10.0.0.2']]);
  });

  test('survives messages that are no queries', async () => {
    const socket = createSocket('udp4');
    const tcp = connect(port, '127.0.0.1');
    await once(tcp, 'connect');
    for (const bytes of [[], [0], Array(600).fill(255), [0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 192, 12]])
      socket.send(Buffer.from(bytes as number[]), port, '127.0.0.1');
    tcp.write(Buffer.from([0, 3, 1, 2, 3]));
    await once(tcp.resume(), 'close');
    expect(await client.resolve4('tag-a-processing.sites.peers')).toHaveLength(2);
    socket.close();
  });
});

test('an answer over UDP that is too long has no records and asks for TCP (RFC 1035, 4.2.1)', () => {
  const name = Buffer.from('\x01a\x05peers\0', 'latin1');
  const message = Buffer.concat([
    Buffer.from([0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
    name,
    Buffer.from([0, 1, 0, 1]),
  ]);
  const query = readQuery(message);
  if (query === null) throw new Error('the query was not recognised');
  const answer = (count: number) =>
    answerTo(query, { code: 0, addresses: Array(count).fill('10.0.0.1'), seconds: 1 }, true);
  expect([answer(30).length <= 512, answer(30).readUInt16BE(2) & 0x0200]).toEqual([true, 0]);
  const cut = answer(40);
  expect([cut.length <= 512, cut.readUInt16BE(2) & 0x0200, cut.readUInt16BE(6)]).toEqual([true, 0x0200, 0]);
});

test('no bytes make the reader of queries fail', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
      const query = readQuery(Buffer.from(bytes));
      if (query !== null) expect(query.question.length).toBeGreaterThanOrEqual(5);
    }),
    { numRuns: 2_000 },
  );
});
