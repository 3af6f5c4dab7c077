import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../base/free-port.ts';
import { describeWith, PATH_WITH_SBIN } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { type GatewayProcess, GatewayStage } from '../support/gateway/stage.ts';
import { ask, HOP_SECRET } from '../support/proxy/proxy.ts';
import { type Seen, startUpstream } from '../support/upstream.ts';

/**
 * The addresses from which the load balancer, a pod of a site and a visitor connect, and one that they claim falsely.
 */
const FRONT = '127.0.0.5';
const POD = '127.0.0.6';
const VISITOR = '127.0.0.7';
const CLAIMED = '203.0.113.9';

describeWith(['kubernetes', 'root', 'nginx', 'haproxy'], 'a front before a gateway', () => {
  let stage: GatewayStage;
  let pod: Awaited<ReturnType<typeof startUpstream>>;
  let host: string;
  const fronts: ChildProcess[] = [];

  beforeAll(async () => {
    stage = await GatewayStage.start();
    const address = await stage.podAddress(1);
    pod = await startUpstream({ address });
    await stage.deliverInstance({ trusted: { cloudflare: [], own: [`${FRONT}/32`] } });
    await stage.deliverCertificate('tls-platform', '*.example.net');
    host = await stage.serve('acme', pod.port, [address]);
  });
  afterAll(async () => {
    for (const front of fronts) {
      const ended = once(front, 'exit');
      front.kill('SIGKILL');
      await ended;
    }
    await stage?.[Symbol.asyncDispose]();
    await pod?.close();
  });

  /**
   * Starts Debian's haproxy in place of a load balancer or an Ingress controller, with these options in its `server`
   * line. Resolves to its port.
   */
  async function front(mode: 'tcp' | 'http', to: number, options: string): Promise<number> {
    const port = (await freePort('127.0.0.1', 0)) ?? 0;
    const file = join(stage.folder, `haproxy-${port}.cfg`);
    const tls = mode === 'http' ? ` ssl crt ${join(stage.folder, 'front.pem')}` : '';
    const lines = [
      'defaults',
      `  mode ${mode}`,
      '  timeout connect 2s',
      '  timeout client 30s',
      '  timeout server 30s',
      'frontend front',
      `  bind 127.0.0.1:${port}${tls}`,
      ...(mode === 'http' ? ['  http-request set-header X-Forwarded-For %[src]'] : []),
      '  default_backend gateway',
      'backend gateway',
      `  source ${FRONT}`,
      `  server gateway 127.0.0.1:${to} ${options}`,
      '',
    ];
    await writeFile(file, lines.join('\n'));
    fronts.push(spawn('haproxy', ['-db', '-f', file], { env: { PATH: PATH_WITH_SBIN }, stdio: 'inherit' }));
    await eventually(async () => {
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect').finally(() => socket.destroy());
    });
    return port;
  }

  const arrived = async (gateway: Pick<GatewayProcess, 'endpoint'>, headers = {}, from = VISITOR) => {
    const { body } = await ask(gateway.endpoint, { host, headers, from });
    return (JSON.parse(body) as Seen).headers['x-forwarded-for']; // the upstream's own answer
  };
  const behind = (gateway: GatewayProcess, tlsPort: number) => ({
    endpoint: { ...gateway.endpoint, tlsPort },
  });

  describe('with the PROXY protocol', () => {
    let gateway: GatewayProcess;
    let port: number;
    beforeAll(async () => {
      gateway = await stage.gateway('proxied', { GATEWAY_PROXY_PROTOCOL_FROM: `${FRONT}/32` });
      await gateway.start();
      port = await front('tcp', gateway.endpoint.tlsPort, 'send-proxy-v2');
    });

    test('the visitor’s address is that of the connection to the front', async () => {
      expect(await arrived(behind(gateway, port))).toBe(VISITOR);
    });

    test.each(['x-forwarded-for', 'x-tagyard-visitor', 'cf-connecting-ip', 'x-real-ip', 'forwarded'])(
      'a visitor can’t claim another address in %s',
      async (name) => {
        const value = name === 'forwarded' ? `for=${CLAIMED}` : CLAIMED;
        expect(await arrived(behind(gateway, port), { [name]: value })).toBe(VISITOR);
      },
    );

    test('the edge can state the visitor’s address with the hop secret', async () => {
      const headers = { 'x-tagyard-hop-secret': HOP_SECRET, 'x-tagyard-visitor': CLAIMED };
      expect(await arrived(behind(gateway, port), headers)).toBe(CLAIMED);
    });

    test('a pod that sends the PROXY header itself is seen with its own address', async () => {
      const socket = connect({ port: gateway.endpoint.tlsPort, host: '127.0.0.1', localAddress: POD });
      await once(socket, 'connect');
      socket.write(`PROXY TCP4 ${CLAIMED} 127.0.0.1 1000 443\r\n`);
      const tls = connectTls({ socket, servername: host, rejectUnauthorized: false });
      await once(tls, 'secureConnect');
      tls.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      let text = '';
      for await (const chunk of tls.setEncoding('utf8')) text += chunk;
      expect(text).toContain(`"x-forwarded-for":"${POD}"`);
      expect(text).not.toContain(CLAIMED);
    });

    test('a connection without the PROXY header is refused', async () => {
      await expect(ask(gateway.endpoint, { host })).rejects.toThrow();
    });
  });

  describe('without the PROXY protocol', () => {
    let gateway: GatewayProcess;
    beforeAll(async () => {
      gateway = await stage.gateway('plain');
      await gateway.start();
      const paths = await stage.ca.pathsFor(host);
      const pem = await Promise.all([readFile(paths.cert, 'utf8'), readFile(paths.key, 'utf8')]);
      await writeFile(join(stage.folder, 'front.pem'), pem.join(''));
    });

    test('the visitor’s address is that of the connection', async () => {
      expect(await arrived(gateway)).toBe(VISITOR);
      expect(await arrived(gateway, { 'x-forwarded-for': CLAIMED }, POD)).toBe(POD);
    });

    test.each(['x-forwarded-for', 'x-tagyard-visitor', 'cf-connecting-ip', 'x-real-ip', 'forwarded'])(
      'neither a visitor nor a pod can claim another address in %s',
      async (name) => {
        const value = name === 'forwarded' ? `for=${CLAIMED}` : CLAIMED;
        const guessed = { 'x-tagyard-hop-secret': 'guess', [name]: value };
        for (const from of [VISITOR, POD]) {
          expect(await arrived(gateway, { [name]: value }, from)).toBe(from);
          expect(await arrived(gateway, guessed, from)).toBe(from);
        }
      },
    );

    test('a custom domain is forwarded to the edge with the address of the connection, whatever is claimed', async () => {
      const edge = await startUpstream({ address: '127.0.0.1' });
      try {
        const custom = 'tags.other.example';
        await stage.deliverInstance({
          trusted: { cloudflare: [], own: [`${FRONT}/32`] },
          edge: { scheme: 'http', address: '127.0.0.1', port: edge.port },
        });
        await stage.deliverCertificate('tls-other', custom);
        await stage.deliverSite('other', [{ kind: 'custom', host: custom, edgeHost: 'other.example.net' }]);
        const claims = {
          'x-tagyard-hop-secret': 'guess',
          'x-tagyard-visitor': CLAIMED,
          'x-forwarded-for': CLAIMED,
        };
        for (const from of [VISITOR, POD]) {
          await eventually(() => ask(gateway.endpoint, { host: custom, headers: claims, from }));
          const { headers } = edge.seen.at(-1) ?? { headers: {} };
          expect(headers).toMatchObject({
            host: 'other.example.net',
            'x-tagyard-hop-secret': HOP_SECRET,
            'x-forwarded-for': from,
          });
          expect(JSON.stringify(headers)).not.toContain(CLAIMED);
        }
      } finally {
        await edge.close();
      }
    });

    test('a trusted HTTP front can state the visitor’s address, and doesn’t replace the one that the edge states', async () => {
      const port = await front('http', gateway.endpoint.tlsPort, `ssl verify none sni str(${host})`);
      expect(await arrived(behind(gateway, port), { 'x-forwarded-for': CLAIMED })).toBe(VISITOR);
      const headers = { 'x-tagyard-hop-secret': HOP_SECRET, 'x-tagyard-visitor': CLAIMED };
      expect(await arrived(behind(gateway, port), headers)).toBe(CLAIMED);
      const guessed = { ...headers, 'x-tagyard-hop-secret': 'guess' };
      expect(await arrived(behind(gateway, port), guessed)).toBe(VISITOR);
    });
  });
});
