import { describe, expect, test } from 'vitest';
import {
  certificateDelivery,
  instanceDelivery,
  siteDelivery,
} from '../../../../gitops/kubernetes/applier/gateway-objects.ts';
import { GatewayReports } from '../../../../gitops/kubernetes/applier/gateway-reports.ts';
import type { Kind, KubernetesObject } from '../../../../gitops/kubernetes/client/kinds.ts';
import type { InstanceDocument } from '../../../../gitops/kubernetes/delivery/documents.ts';
import { deliveryDigest, formatReport } from '../../../../gitops/kubernetes/delivery/report.ts';
import { readDelivered } from '../../../../gitops/kubernetes/delivery/secrets.ts';
import { eventually } from '../../../support/eventually.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const PLACE = {
  identity: { instance: 'test', host: 'tag-1' },
  namespace: null,
  gatewayNamespace: 'gateways',
};
const INSTANCE: InstanceDocument = {
  version: 1,
  hopSecret: { current: 'hop-secret-of-the-tests' },
  trusted: { cloudflare: [], own: [] },
  edge: { scheme: 'https', address: '192.0.2.1', port: 443 },
};
const SECRET = 'tagyard-site-acme-shop';

/** The Secrets and Leases of a namespace, and what waits for them. */
class Stage {
  /** The provisioner's clock, milliseconds; gateways have their own. */
  now = 0;
  #version = 0;
  #reads = 0;
  /** Thrown by each read of the objects of that kind. */
  readonly faults = new Map<Kind, Error>();
  readonly secrets = new Map<string, KubernetesObject>();
  readonly leases = new Map<string, KubernetesObject>();
  readonly reports = new GatewayReports({
    copies: {
      of: (kind: Kind) => {
        if (kind === 'Lease') this.#reads += 1;
        const fault = this.faults.get(kind);
        if (fault !== undefined) throw fault;
        return (kind === 'Secret' ? this.secrets : this.leases).values();
      },
    },
    namespace: 'gateways',
    now: () => this.now,
    timeoutMs: 20_000,
  });

  write(name: string, resourceVersion: string): void {
    const object = siteDelivery(loadedManifest(name.replace('tagyard-site-', '')), PLACE);
    this.secrets.set(name, { ...object, metadata: { ...object.metadata, resourceVersion } });
  }

  /** A gateway renews its Lease, with a report of what it serves: by default all Secrets as they are now. */
  renew(
    name: string,
    more: { ready?: boolean; delivered?: string; refused?: Record<string, string> } = {},
    {
      renewTime = '2026-01-01T00:00:00.000000Z',
      leaseDurationSeconds = 15,
    }: { renewTime?: string; leaseDurationSeconds?: number } = {},
  ): void {
    this.#version += 1;
    const report = {
      delivered: this.digest,
      generation: '1',
      ready: true,
      refused: {},
      unused: {},
      failed: {},
      ...more,
    };
    this.leases.set(name, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name, resourceVersion: String(this.#version), annotations: formatReport(report) },
      spec: { leaseDurationSeconds, renewTime },
    });
  }

  get digest(): string {
    return deliveryDigest(this.secrets.values());
  }

  /** Whether `served` is still pending after the Leases were read. */
  async isPending(served: Promise<void>): Promise<boolean> {
    let isPending = true;
    const end = () => {
      isPending = false;
    };
    void served.then(end, end);
    const before = this.#reads;
    // The second read begins after the outcome of the first.
    await eventually(() => {
      if (isPending) expect(this.#reads).toBeGreaterThan(before + 1);
    });
    return isPending;
  }

  served(): Promise<void> {
    return this.reports.served(SECRET, AbortSignal.timeout(10_000));
  }
}

test('a site’s Secret has its names and where each leads, as a gateway reads it', () => {
  const customDomains = ['tags.acme-shop.example'];
  const manifest = loadedManifest('acme-shop', 3, { customDomains });
  const object = siteDelivery(manifest, PLACE);
  expect(object.metadata).toMatchObject({
    name: SECRET,
    namespace: 'gateways',
    labels: {
      'tagyard/instance': 'test',
      'tagyard/host': 'tag-1',
      'tagyard/site': 'acme-shop',
      'tagyard/gateway': 'site',
    },
  });
  const namespace = `tagyard-test-${manifest.client}`;
  expect(readDelivered(object)).toEqual({
    kind: 'site',
    document: {
      version: 1,
      site: 'acme-shop',
      names: [
        {
          ...{ kind: 'origin', host: 'acme-shop-origin.example.net', namespace },
          ...{ service: 'tag-acme-shop-processing', port: 20_006 },
        },
        {
          ...{ kind: 'preview', host: 'acme-shop-preview.example.net', namespace },
          ...{ service: 'tag-acme-shop-preview', port: 20_007 },
        },
        { kind: 'custom', host: 'tags.acme-shop.example', edgeHost: 'acme-shop.example.net' },
      ],
    },
  });
});

test('a custom domain below an unproven domain is not delivered', () => {
  const customDomains = ['tags.acme-shop.example'];
  const unproven = ['acme-shop.example'];
  const read = readDelivered(
    siteDelivery(loadedManifest('acme-shop', 3, { customDomains, unproven }), PLACE),
  );
  expect(read.kind === 'site' && read.document.names.map(({ kind }) => kind)).toEqual(['origin', 'preview']);
});

test('a site’s options are delivered with its names, except those that aren’t for the preview server', () => {
  const manifest = loadedManifest('acme-shop', 3, { customDomains: ['m.acme-shop.example'], maxBodyMb: 2 });
  const read = readDelivered(siteDelivery(manifest, PLACE));
  const names = read.kind === 'site' ? read.document.names : [];
  expect(names.map((name) => [name.kind, 'options' in name ? name.options : undefined])).toEqual([
    ['origin', { maxBodyMb: 2 }],
    ['preview', undefined],
    ['custom', { maxBodyMb: 2 }],
  ]);
});

test('the instance’s Secret and those of certificates belong to no site', () => {
  const pair = { cert: 'a certificate', key: 'a key' };
  const [instance, certificate] = [instanceDelivery(INSTANCE, PLACE), certificateDelivery(pair, PLACE)];
  expect(readDelivered(instance)).toEqual({ kind: 'instance', document: INSTANCE });
  expect(readDelivered(certificate)).toEqual({ kind: 'certificate', ...pair });
  for (const { metadata } of [instance, certificate])
    expect(metadata.labels).not.toHaveProperty('tagyard/site');
  const renewed = certificateDelivery({ ...pair, cert: 'a renewed one' }, PLACE);
  expect(renewed.metadata.name).not.toBe(certificate.metadata.name);
});

test('a change is served when each gateway that takes requests reports it', async () => {
  const stage = new Stage();
  stage.write(SECRET, '1');
  stage.renew('one');
  stage.renew('two');
  const before = stage.digest;
  stage.write(SECRET, '2');
  let isServed = false;
  const served = stage.served().then(() => {
    isServed = true;
  });
  stage.renew('one');
  stage.renew('two', { delivered: before });
  // Meanwhile another site changes, but what the first gateway has reported still proves our change.
  stage.write('tagyard-site-other', '3');
  await new Promise((resolve) => setImmediate(resolve));
  expect(isServed).toBe(false);
  stage.renew('two');
  await served;
});

test('a gateway whose Lease isn’t renewed, or that takes no requests, isn’t waited for', async () => {
  const stage = new Stage();
  stage.write(SECRET, '1');
  stage.renew('ended', { delivered: 'an earlier one' });
  stage.renew('starts', { delivered: '', ready: false });
  stage.renew('one');
  // A process that has just started can’t know which of them run.
  const served = stage.served();
  expect(await stage.isPending(served)).toBe(true);
  stage.now += 14_000;
  stage.renew('one');
  expect(await stage.isPending(served)).toBe(true);
  stage.now += 1_000;
  await served;
});

test.each(['2020-01-01T00:00:00.000000Z', '2100-01-01T00:00:00.000000Z'])(
  'a gateway whose clock says %s counts as running while it renews its Lease, and not after',
  async (renewTime) => {
    const stage = new Stage();
    stage.write(SECRET, '1');
    stage.renew('one', {}, { renewTime });
    await stage.served();
    stage.renew('one', { delivered: 'an earlier one' }, { renewTime, leaseDurationSeconds: 1e9 });
    stage.renew('two');
    const served = stage.served();
    expect(await stage.isPending(served)).toBe(true);
    stage.now += 15_000;
    stage.renew('two');
    await served;
  },
);

test.each([
  [
    'a refusal',
    { refused: { [SECRET]: 'conflicting server name' } },
    0,
    /gateway one refuses it: conflicting/,
  ],
  [
    'a gateway that serves earlier Secrets',
    { delivered: 'an earlier one' },
    21_000,
    /not served yet by the gateways one in gateways/,
  ],
  [
    'a gateway that takes no requests',
    { ready: false },
    21_000,
    /no gateway in gateways serves it yet: one can’t/,
  ],
] as const)('a wait for gateways ends with an error that names %s', async (_, report, laterMs, message) => {
  const stage = new Stage();
  stage.write(SECRET, '1');
  stage.renew('one', report);
  const served = stage.served();
  stage.now += laterMs;
  if (laterMs > 0) stage.renew('one', report);
  await expect(served).rejects.toThrow(message);
});

describe('a gateway with many refusals', () => {
  const others = (count: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`certificate-${index}`, 'ee key too small']),
    );

  test('reports more than ten by name', async () => {
    const stage = new Stage();
    stage.write(SECRET, '1');
    stage.renew('one', { refused: { ...others(10), [SECRET]: 'conflicting server name' } });
    await expect(stage.served()).rejects.toThrow(/gateway one refuses it: its log says why/);
    stage.renew('one', { refused: others(11) });
    await stage.served();
  });

  test('proves nothing about Secrets that its shortened report doesn’t name', async () => {
    const stage = new Stage();
    stage.write(SECRET, '1');
    stage.renew('one', { refused: { ...others(2_000), [SECRET]: 'conflicting server name' } });
    const size = JSON.stringify([...stage.leases.values()]).length;
    // Kubernetes accepts at most 256 KiB of annotations.
    expect(size).toBeLessThan(200_000);
    await expect(stage.served()).rejects.toThrow(/gateway one refuses too many Secrets to name .*its log/);
  });

  test('proves nothing about unnamed Secrets if it names ten and is of an earlier version', async () => {
    const stage = new Stage();
    stage.write(SECRET, '1');
    const refused = async (count: number) => {
      stage.renew('one');
      const [lease] = stage.leases.values();
      const annotations = { ...lease?.metadata.annotations };
      annotations['tagyard/gateway-refused'] = JSON.stringify(others(count));
      delete annotations['tagyard/gateway-unnamed'];
      if (lease) stage.leases.set('one', { ...lease, metadata: { ...lease.metadata, annotations } });
      await stage.served();
    };
    await refused(9);
    await expect(refused(10)).rejects.toThrow(/too many Secrets to name/);
  });
});

test('what gateways refuse is known once each that takes requests serves the newest Secrets', () => {
  const stage = new Stage();
  expect(stage.reports.refused()).toBeNull();
  stage.write(SECRET, '1');
  stage.renew('starts', { ready: false, delivered: '' });
  expect(stage.reports.refused()).toBeNull();
  stage.renew('one', { refused: { weak: 'ee key too small' } });
  stage.renew('two', { refused: { other: '' } });
  expect(stage.reports.refused()).toEqual(new Set(['weak', 'other']));
  stage.write(SECRET, '2');
  stage.renew('one');
  expect(stage.reports.refused()).toBeNull();
  stage.renew('two');
  expect(stage.reports.refused()).toEqual(new Set());
  const many = Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`certificate-${index}`, '']));
  stage.renew('two', { refused: many });
  expect(stage.reports.refused()).toBeNull();
});

test('a wait for gateways ends with an error that says that none runs', async () => {
  const stage = new Stage();
  stage.write(SECRET, '1');
  const served = stage.served();
  stage.now += 21_000;
  await expect(served).rejects.toThrow('no gateway in gateways serves it yet: none runs');
});

test.each<Kind>(['Secret', 'Lease'])(
  'a %s that can’t be read ends the waiting with its error; once it can be read, a wait succeeds',
  async (kind) => {
    const stage = new Stage();
    stage.write(SECRET, '1');
    stage.renew('one');
    stage.faults.set(kind, new Error(`${kind} one is no JSON`));
    await expect(stage.served()).rejects.toThrow(`${kind} one is no JSON`);
    stage.faults.delete(kind);
    await stage.served();
  },
);
