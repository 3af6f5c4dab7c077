import { createHmac, hkdfSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { checkUpstream } from '../../../gitops/host-report/upstream-check.ts';
import { checkOf } from '../../support/checks/findings.ts';

const EDGE_SECRET = 'the-secret-of-the-edge';

/** As the edge: the signature is of a visit to this path. */
function isSigned(mark: string, path: string): boolean {
  const [minute, name, signature] = mark.split('-');
  const key = Buffer.from(hkdfSync('sha256', EDGE_SECRET, '', 'tagyard edge signatures 1', 32));
  const signed = createHmac('sha256', key).update(`probe GET m.site.example ${path} ${minute} ${name}`);
  return signature === signed.digest('hex');
}

test('a rotation of HOP_SECRET that is under way is no finding', async () => {
  const server = createServer(({ url = '', headers }, response) => {
    if (isSigned(String(headers['x-tagyard-probe']), url))
      response.setHeader('x-tagyard-probe', 'recognised');
    response.end('urn:tagyard:problem:not_found');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const upstream = { scheme: 'http', address: '127.0.0.1', port } as const;
  const asked = async (hopSecret: string, previousHopSecret?: string) =>
    checkOf(
      await checkUpstream({ upstream, name: 'm.site.example', isSite: true, hopSecret, previousHopSecret }),
      'hop_secret',
    );
  try {
    expect(await asked(EDGE_SECRET, 'one-from-before')).toMatchObject({
      status: 'passed',
      detail: 'the edge has the same HOP_SECRET',
    });
    expect(await asked('the-next-secret', EDGE_SECRET)).toMatchObject({
      status: 'passed',
      detail: expect.stringContaining('a rotation is under way'),
    });
    expect((await asked('the-next-secret', 'another-secret')).status).toBe('failed');
    expect((await asked('the-next-secret')).status).toBe('failed');
  } finally {
    server.close();
  }
});
