import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { describeWith, KUBERNETES } from '../support/components.ts';
import { CHART, helm, renderedChart, valueFlags } from '../support/kubernetes/chart.ts';

const IMAGE = 'provisioner.test/provisioner';
const VALUES = { image: { repository: IMAGE, digest: `sha256:${'a'.repeat(64)}` }, host: 'cluster-1' };
const ADDRESS = { KUBERNETES_GATEWAY_ADDRESS: '192.0.2.7' };

/** Values with the gateway, and with an Ingress and routes of the Gateway API in front of it. */
const WITH_GATEWAY = {
  ...VALUES,
  settings: ADDRESS,
  gateway: {
    enabled: true,
    image: { repository: 'gateway.test/gateway', digest: `sha256:${'b'.repeat(64)}` },
    ingress: { enabled: true, hosts: ['*.origin.example.net'] },
    gatewayApi: { enabled: true, className: 'example', hosts: ['*.origin.example.net'] },
  },
};

const scored = z.array(
  z.object({
    checks: z.array(
      z.object({ check: z.object({ id: z.string() }), grade: z.number(), skipped: z.boolean() }),
    ),
  }),
);

describeWith('kubernetes', 'the chart, as its schema, Helm and kube-score judge it', () => {
  test('passes Helm’s strict lint, and without an image it says what is missing', async () => {
    await helm('lint', '--strict', CHART, ...valueFlags(VALUES));
    await helm('lint', '--strict', CHART, ...valueFlags(WITH_GATEWAY));
    await expect(helm('lint', '--strict', CHART)).rejects.toThrow(/image\/digest.*does not match/s);
  });

  test.each([
    ['a setting that the chart sets', { settings: { HOST_NAME: 'other' } }, /settings/],
    ['a secret among the settings', { settings: { HOP_SECRET: 'secret' } }, /settings/],
    ['an image by its tag', { image: { repository: IMAGE, digest: 'latest' } }, /digest/],
    ['a value that the chart doesn’t have', { copies: 2 }, /copies/],
    ['several replicas', { replicas: 2 }, /replicas/],
    ['a gateway without an image', { gateway: { enabled: true } }, /gateway/],
    ['routes without names', { gateway: { gatewayApi: { enabled: true, className: 'example' } } }, /hosts/],
  ])('refuses %s', async (_, values, reason) => {
    await expect(renderedChart({ ...VALUES, ...values })).rejects.toThrow(reason);
  });

  test('refuses the PROXY protocol with a front that speaks HTTP, and takes it with one that passes TLS through', async () => {
    const rendered = (front: object) =>
      renderedChart({
        ...VALUES,
        settings: ADDRESS,
        gateway: {
          ...{ enabled: true, image: WITH_GATEWAY.gateway.image },
          service: { proxyProtocolFrom: ['192.0.2.0/24'] },
          ...front,
        },
      });
    const { ingress, gatewayApi } = WITH_GATEWAY.gateway;
    const customDomains = [{ host: 'tags.acme.example', secretName: 'own' }];
    for (const front of [{ ingress }, { gatewayApi: { ...gatewayApi, customDomains } }])
      await expect(rendered(front)).rejects.toThrow(/proxyProtocolFrom can't be used with gateway.ingress/);
    expect(await rendered({ gatewayApi })).toContain('GATEWAY_PROXY_PROTOCOL_FROM');
  });

  test('refuses a front whose address no setting and no Service states', async () => {
    const { ingress, gatewayApi, image } = WITH_GATEWAY.gateway;
    for (const front of [{ ingress }, { gatewayApi }, { service: { type: 'NodePort' } }]) {
      const values = { ...VALUES, gateway: { enabled: true, image, ...front } };
      await expect(renderedChart(values)).rejects.toThrow(/set settings.KUBERNETES_GATEWAY_ADDRESS/);
      expect(await renderedChart({ ...values, settings: ADDRESS })).not.toContain(
        'name: KUBERNETES_GATEWAY_SERVICE',
      );
    }
  });

  // Gateways may read all Secrets of their namespace. In the provisioner's or the sites' namespace, these would include
  // the age identity or the keys of sites.
  test('refuses to put gateways into a namespace that has other Secrets', async () => {
    const rendered = (own: object, more: object = {}) =>
      renderedChart({ ...WITH_GATEWAY, ...more, gateway: { ...WITH_GATEWAY.gateway, ...own } });
    const refused = /gateway.namespace must be a namespace of its own/;
    for (const createNamespace of [true, false])
      await expect(rendered({ namespace: 'tagyard', createNamespace })).rejects.toThrow(refused);
    await expect(rendered({ namespace: 'sites' }, { namespace: 'sites' })).rejects.toThrow(refused);
    expect(await rendered({ namespace: 'front' }, { namespace: 'sites' })).toContain('namespace: front');
  });

  test('refuses a state that ends with the pod if each pod would order all certificates', async () => {
    const settings = { ACME_DIRECTORY_URL: 'https://acme.example/directory' };
    await expect(renderedChart({ ...VALUES, state: { persistent: false }, settings })).rejects.toThrow(
      /persistent: false can't be used/,
    );
    expect(await renderedChart({ ...VALUES, settings })).toContain('ACME_DIRECTORY_URL');
  });

  test('passes numbers of settings on as they are written', async () => {
    const numbers = {
      CLOUDFLARE_RATE: 3.5,
      HOST_TAKEOVER_TERM: 12_345_678,
      ACME_RENEW_DAYS: 30,
      LOG_SQL: true,
    };
    const { gateway } = WITH_GATEWAY;
    const own = { settings: { NAME_CONNECTIONS: 100_000_000, LOG_LEVEL: 'info' }, priority: 1_234_567 };
    const values = { ...WITH_GATEWAY, settings: { ...ADDRESS, ...numbers }, gateway: { ...gateway, ...own } };
    const rendered = await renderedChart(values);
    for (const [name, value] of Object.entries({ ...numbers, ...own.settings }))
      expect(rendered).toContain(`- name: ${name}\n              value: "${value}"\n`);
    expect(rendered).toMatch(/^value: 1234567$/m);
  });

  test('grants access to no Service if no Service of gateways is set', async () => {
    const single = { ...VALUES, namespace: 'sites' };
    expect(await renderedChart(single)).not.toMatch(/resourceNames: \[\]|name: tagyard-tagyard-gateway/);
    const settings = { KUBERNETES_GATEWAY_SERVICE: 'front/balancer' };
    expect(await renderedChart({ ...single, settings })).toMatch(/resourceNames: \[balancer\]/);
  });

  // A digest names one content, so asking the registry again would only make each start depend on the registry.
  test('has no critical finding of kube-score, except that an image by digest isn’t always pulled', async () => {
    const all = [
      VALUES,
      { ...VALUES, namespace: 'sites' },
      { ...VALUES, state: { persistent: false } },
      WITH_GATEWAY,
    ];
    const objects = (await Promise.all(all.map(renderedChart))).join('\n');
    const { stdout } = await execa(
      join(KUBERNETES, 'kube-score'),
      ['score', '--output-format', 'json', '-'],
      {
        input: objects,
        reject: false,
      },
    );
    const critical = scored
      .parse(JSON.parse(stdout))
      .flatMap(({ checks }) => checks.filter(({ grade, skipped }) => grade === 1 && !skipped))
      .map(({ check }) => check.id);
    expect(new Set(critical)).toEqual(new Set(['container-image-pull-policy']));
  });
});
