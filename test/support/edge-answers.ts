import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestEmulator } from './cloudflare/emulator.ts';

const LOOPBACK = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1]);

/**
 * An edge that answers for the loaders of the hosts that the emulator's KV has, and a DNS server that leads these hosts to
 * it, for a provisioner whose worker doesn't run. `env` makes the provisioner ask both.
 */
export async function startEdgeAnswers({ db }: Pick<TestEmulator, 'db'>) {
  const written = db.prepare(
    'SELECT 1 FROM kv WHERE name = ?1 UNION ALL SELECT 1 FROM kv_pending WHERE name = ?1 AND value IS NOT NULL',
  );
  const knows = (host: string) => written.get(host) !== undefined;
  const edge = createServer(({ headers }, response) => {
    const isKnown = knows((headers.host ?? '').replace(/:\d+$/, ''));
    response
      .writeHead(isKnown ? 200 : 404, { 'content-type': isKnown ? 'text/javascript' : 'text/plain' })
      .end();
  });
  edge.listen(0, '127.0.0.1');
  await once(edge, 'listening');
  const dns = createSocket('udp4');
  dns.on('message', (query, { port, address }) => {
    const end = query.indexOf(0, 12) + 5;
    const question = query.subarray(12, end);
    const labels: string[] = [];
    for (let at = 0; (question[at] ?? 0) > 0; at += (question[at] ?? 0) + 1) {
      labels.push(question.toString('latin1', at + 1, at + 1 + (question[at] ?? 0)));
    }
    const isKnown = knows(labels.join('.').toLowerCase());
    const hasAddress = isKnown && question.readUInt16BE(question.length - 4) === 1;
    const head = Buffer.from([0, 0, 0x81, isKnown ? 0x80 : 0x83, 0, 1, 0, hasAddress ? 1 : 0, 0, 0, 0, 0]);
    query.copy(head, 0, 0, 2);
    dns.send(Buffer.concat([head, question, ...(hasAddress ? [LOOPBACK] : [])]), port, address);
  });
  dns.bind(0, '127.0.0.1');
  await once(dns, 'listening');
  return {
    env: {
      EDGE_PUBLIC_URL: `http://{host}:${(edge.address() as AddressInfo).port}`, // it listens on TCP
      DNS_RESOLVERS: `127.0.0.1:${dns.address().port}`,
    },
    async close(): Promise<void> {
      dns.close();
      edge.closeAllConnections();
      edge.close();
      await once(edge, 'close');
    },
  };
}
