import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatReport, readReport } from '../../../../gitops/kubernetes/delivery/report.ts';
import {
  type Delivered,
  deliverySecret,
  readDelivered,
} from '../../../../gitops/kubernetes/delivery/secrets.ts';
import { configurationOf } from '../../../../gitops/kubernetes/gateway/configuration.ts';
import { ensureLocalCa } from '../../../../sites/local/local-ca.ts';
import { selfSigned } from '../../../support/tls/self-signed.ts';

const HOP = { current: 'hop-secret-of-the-tests-0123456789' };
const instance: Delivered = {
  kind: 'instance',
  document: {
    version: 1,
    hopSecret: HOP,
    trusted: { cloudflare: [], own: [] },
    edge: { scheme: 'https', address: '192.0.2.1', port: 443 },
  },
};
const origin = (host: string, service = 'tag-a-processing') =>
  ({ kind: 'origin', host, namespace: 'sites', service, port: 20_000 }) as const;
const site = (
  id: string,
  ...names: Extract<Delivered, { kind: 'site' }>['document']['names']
): Delivered => ({
  kind: 'site',
  document: { version: 1, site: id, names },
});
/** An object as the API server has it. */
const stored = (delivered: Delivered, data?: object) => {
  const { labels, ...secret } = deliverySecret(delivered);
  const metadata = { name: 's', labels };
  return { apiVersion: 'v1', kind: 'Secret', metadata, ...secret, ...(data && { data }) } as const;
};

describe('the configuration of what is delivered', () => {
  let directory: string;
  let certificate: (host: string) => Promise<Delivered>;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'tagyard-delivery-'));
    const ca = await ensureLocalCa(directory);
    certificate = async (host) => {
      const paths = await ca.pathsFor(host);
      const [cert, key] = [await readFile(paths.cert, 'utf8'), await readFile(paths.key, 'utf8')];
      return { kind: 'certificate', cert, key };
    };
  });
  afterAll(async () => await rm(directory, { recursive: true, force: true }));

  test('is read from Secrets as it was written', async () => {
    for (const one of [instance, site('a', origin('a.example.net')), await certificate('a.example.net')])
      expect(readDelivered(stored(one))).toEqual(one);
  });

  test.each([
    ['no data', {}, /has no data "document"/],
    ['no JSON', { document: Buffer.from('{').toString('base64') }, /is not JSON/],
    [
      'another version',
      { document: Buffer.from('{"version":2}').toString('base64') },
      /update the gateway first/,
    ],
    [
      'a hostile name',
      {
        document: Buffer.from(
          JSON.stringify({ version: 1, site: 'a', names: [origin('a.example; return 200')] }),
        ).toString('base64'),
      },
      /names\.0\.host must be/,
    ],
  ])('is refused if it has %s; the reason contains no value', (_case, data, reason) => {
    expect(() => readDelivered(stored(site('a'), data))).toThrow(reason);
  });

  test('serves the names of a site whose policy script has no token, but not the script', () => {
    const policy = { kind: 'policy', host: 'tag-a-policy', script: '' } as const;
    const names = (...more: Parameters<typeof site>[1][]) =>
      configurationOf(
        new Map([
          ['i', instance],
          ['a', site('a', origin('a.example.net'), ...more)],
        ]),
      );
    const without = names(policy);
    expect([...without.targets.keys()]).toEqual(['a.example.net']);
    expect(without.files.size).toBe(0);
    expect(without.faults.size).toBe(0);
    expect(names({ ...policy, token: '0'.repeat(32) }).files.size).toBe(1);
  });

  test('makes one server for the names of a wildcard, the same with and without sites under it', async () => {
    const wildcard = await certificate('*.example.net');
    const deliveries = (...sites: Delivered[]) =>
      new Map<string, Delivered>([
        ['i', instance],
        ['w', wildcard],
        ...sites.map((one, at) => [`s${at}`, one] as const),
      ]);
    const none = configurationOf(deliveries());
    const some = configurationOf(
      deliveries(site('a', origin('a.example.net')), site('b', origin('b.example.net'))),
    );
    expect([...some.files]).toEqual([...none.files]);
    expect([...some.files.values()]).toMatchObject([{ kind: 'platform', names: ['*.example.net'] }]);
    expect([...some.targets.keys()]).toEqual(['a.example.net', 'b.example.net']);
  });

  test('takes only those names of a certificate that nginx can serve', async () => {
    const wildcards = await selfSigned(['*.example.net', '*.dev_1.example.net', `*.${'a.'.repeat(127)}net`]);
    const found = configurationOf(
      new Map<string, Delivered>([
        ['i', instance],
        ['w', wildcards],
      ]),
    );
    expect([...found.files.values()]).toMatchObject([{ secret: 'w', names: ['*.example.net'] }]);
    expect(found.faults.size).toBe(0);
  });

  test('serves a certificate that nginx accepts, not a weak one that expires later, and reports the weak one', async () => {
    const good = await selfSigned(['*.example.net']);
    const weak = await selfSigned(['*.example.net'], { rsaBits: 1024, days: 365 });
    const found = configurationOf(
      new Map<string, Delivered>([
        ['i', instance],
        ['good', good],
        ['weak', weak],
      ]),
    );
    expect([...found.files.values()]).toMatchObject([{ secret: 'good', pair: { cert: good.cert } }]);
    expect([...found.faults]).toEqual([
      ['weak', 'nginx refuses the certificate or its key: ee key too small'],
    ]);
  });

  test('serves a wildcard by its own certificate, even if a name under it has another one', async () => {
    const found = configurationOf(
      new Map<string, Delivered>([
        ['i', instance],
        ['w', await selfSigned(['*.example.net'])],
        ['own', await selfSigned(['any.example.net'])],
      ]),
    );
    expect([...found.files.values()]).toMatchObject([{ secret: 'w', names: ['*.example.net'] }]);
  });

  test('prefers a certificate for the name itself', async () => {
    const found = configurationOf(
      new Map([
        ['i', instance],
        ['w', await certificate('*.example.net')],
        ['o', await certificate('own.example.net')],
        ['s', site('a', origin('own.example.net'), origin('a.example.net'))],
      ]),
    );
    expect([...found.files.values()].map((file) => file.kind === 'platform' && file.names)).toEqual([
      ['*.example.net'],
      ['own.example.net'],
    ]);
  });

  test('has each name once: the older Secret keeps it, and the other one is reported', () => {
    const found = configurationOf(
      new Map([
        ['i', instance],
        ['first', site('a', origin('a.example.net', 'first'))],
        [
          'second',
          site('b', origin('a.example.net', 'second'), {
            kind: 'custom',
            host: 'b.example',
            edgeHost: 'e.example',
          }),
        ],
      ]),
    );
    expect(found.targets.get('a.example.net')).toMatchObject({ service: 'first' });
    expect([...found.faults]).toEqual([['second', expect.stringContaining('a.example.net')]]);
    expect([...found.files.keys()]).toEqual(['b@b.example.conf']);
  });

  test('reports a certificate with the key of another one, and no other Secret', async () => {
    const [one, other] = [await certificate('a.example.net'), await certificate('b.example.net')];
    if (one.kind !== 'certificate' || other.kind !== 'certificate') throw new Error('no certificates');
    const bad: Delivered = { ...one, key: other.key };
    const found = configurationOf(
      new Map<string, Delivered>([
        ['i', instance],
        ['bad', bad],
        ['good', other],
      ]),
    );
    expect([...found.faults]).toEqual([['bad', 'the key is not that of the certificate']]);
  });
});

test('a report is read from a Lease as it was written, but refusals and failures are cut', () => {
  const refused = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`s${index}`, 'why']));
  const failed = Object.fromEntries(
    Array.from({ length: 200 }, (_, index) => [
      `sites/tag-${index}-preview`,
      { number: index, reason: 'why '.repeat(200) },
    ]),
  );
  const annotations = formatReport({
    delivered: 'd',
    generation: '1-a',
    ready: true,
    refused,
    unused: { 'sites/tag-acme-preview': 12 },
    failed,
  });
  const lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'x', annotations },
  } as const;
  const found = readReport(lease);
  expect(found).toMatchObject({ delivered: 'd', generation: '1-a', ready: true });
  expect(found?.unused).toEqual({ 'sites/tag-acme-preview': 12 });
  const unstarted = Object.entries(found?.failed ?? {});
  expect(unstarted[0]).toEqual(['sites/tag-0-preview', { number: 0, reason: 'why '.repeat(125) }]);
  expect([unstarted.length, unstarted[99]?.[1].reason.length]).toEqual([100, 50]);
  const { 'tagyard/gateway-failed': _, ...earlier } = annotations;
  expect(readReport({ ...lease, metadata: { name: 'x', annotations: earlier } })?.failed).toEqual({});
  const texts = Object.values(found?.refused ?? {});
  expect([texts.length, texts.filter((text) => text === 'why').length]).toEqual([20, 10]);
  expect(readReport({ ...lease, metadata: { name: 'x' } })).toBeNull();
});
