import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import getPort from 'get-port';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkDnsServer } from '../../../gitops/host-report/dns-server-check.ts';
import { checkAcme, checkDnsZones, checkNginx } from '../../../gitops/host-report/setting-checks.ts';
import { findingOf } from '../../support/checks/findings.ts';
import { describeWith } from '../../support/components.ts';
import { KNOT_ZONE, type Knot, startKnot } from '../../support/dns/knot.ts';
import { startPebble } from '../../support/pebble.ts';
import { NGINX } from '../../support/proxy/nginx.ts';

let stack: AsyncDisposableStack;
let folder: string;
beforeEach(async () => {
  stack = new AsyncDisposableStack();
  folder = await mkdtemp(join(tmpdir(), 'tagyard-check-'));
  stack.defer(() => rm(folder, { recursive: true }));
});
afterEach(() => stack.disposeAsync());

describeWith('knot', 'the check of the name server', () => {
  let knot: Knot;
  beforeEach(async () => {
    knot = await startKnot();
    stack.defer(() => knot.close());
  });
  const check = (name = 'tagyard', { zone = KNOT_ZONE, algorithm = 'hmac-sha256', secret = name } = {}) =>
    checkDnsServer(
      { server: { host: '127.0.0.1', port: knot.port }, zone },
      { name, algorithm, secretFile: join(knot.dir, `${secret}.secret`) },
    );

  test('passes with the key that may update the zone, and changes nothing', async () => {
    const before = await knot.serial();
    expect(await check()).toMatchObject({ name: 'dns_server', status: 'passed', fix: null });
    expect(await knot.serial()).toBe(before);
  });

  test('a dead server is a finding until it runs', async () => {
    await knot.stop();
    expect(findingOf(await check(), /^DNS_SERVER 127/)).toBe('refused');
    await knot.start();
    expect(await check()).toMatchObject({ status: 'passed' });
  });

  test.each<[string, Parameters<typeof check>, RegExp]>([
    ['a key that only reads', ['reader'], /^DNS_SERVER .*DNS_TSIG_NAME/],
    ['another secret', ['tagyard', { secret: 'reader' }], /DNS_TSIG_SECRET_FILE/],
    ['an unknown key', ['nobody', { secret: 'tagyard' }], /DNS_TSIG_NAME/],
    ['another algorithm', ['tagyard', { algorithm: 'hmac-sha512' }], /^DNS_SERVER /],
    ['a zone of others', ['tagyard', { zone: 'example.org' }], /DNS_ZONE/],
    ['a missing secret', ['tagyard', { secret: 'none' }], /ENOENT/],
  ])('%s is a finding', async (_what, call, fact) => {
    expect(findingOf(await check(...call), fact)).toBe('refused');
    expect(await check()).toMatchObject({ status: 'passed' });
  });

  test('zones that no resolver knows are a finding until the setting names one that is known', async () => {
    const resolver = [`127.0.0.1:${knot.port}`];
    const zones = (EDGE_DOMAIN: string) => checkDnsZones({ EDGE_DOMAIN }, resolver);
    expect(await zones(KNOT_ZONE)).toMatchObject({ name: 'dns_zones', status: 'passed' });
    expect(await zones(`eu.${KNOT_ZONE}`)).toMatchObject({ status: 'passed' });
    await knot.stop();
    expect(findingOf(await zones(KNOT_ZONE), /give no answer for example\.net/)).toBe('silent');
    await knot.start();
    expect(await zones(KNOT_ZONE)).toMatchObject({ status: 'passed' });
  });
});

describeWith('pebble', 'the check of the certificate authority', () => {
  test('an authority of one’s own needs its CA; one that is down is a finding until it runs', async () => {
    const [dnsPort, httpPort] = [await getPort(), await getPort()];
    const pebble = await startPebble({ dnsPort, httpPort });
    stack.defer(() => pebble.close());
    const check = (caFile?: string) => checkAcme(pebble.directoryUrl, caFile);
    expect(await check(pebble.caFile)).toMatchObject({ name: 'acme', status: 'passed', fix: null });
    await pebble.stop();
    expect(findingOf(await check(pebble.caFile), /^ACME_DIRECTORY_URL https/)).toBe('silent');
    await pebble.start();
    expect(await check(pebble.caFile)).toMatchObject({ status: 'passed' });
    const page = await checkAcme(pebble.directoryUrl.replace(/dir$/, 'nonsense'), pebble.caFile);
    expect(findingOf(page, /^ACME_DIRECTORY_URL https/)).toBe('silent');
    expect(findingOf(await check(join(folder, 'none')), /ENOENT/)).toBe('silent');
  });
});

describeWith('nginx', 'the check of nginx', () => {
  test('passes with nginx; the system’s is a finding until its configuration has the line', async () => {
    const prefix = join(folder, 'proxy');
    const systemConfig = join(folder, 'nginx.conf');
    expect(await checkNginx(NGINX, { systemConfig: undefined, prefix })).toMatchObject({
      name: 'nginx',
      status: 'passed',
      detail: expect.stringMatching(/^nginx \d+\./),
    });
    await mkdir(join(prefix, 'current'), { recursive: true });
    const write = (more: string) =>
      writeFile(
        systemConfig,
        `pid ${folder}/nginx.pid; error_log ${folder}/error.log; events {} http { access_log off; ${more} }`,
      );
    await write('');
    const found = await checkNginx(NGINX, { systemConfig, prefix });
    expect(findingOf(found, /^NGINX_SYSTEM_CONFIG: .* lacks the line/)).toBe('include');
    await write(/"(.*)"/.exec(found.detail)?.[1] ?? '');
    expect(await checkNginx(NGINX, { systemConfig, prefix })).toMatchObject({ status: 'passed' });
    await write('nonsense;');
    expect(await checkNginx(NGINX, { systemConfig, prefix })).toMatchObject({ status: 'skipped', fix: null });
  });

  test('an nginx that is too old is a finding', async () => {
    const bin = join(folder, 'nginx');
    await writeFile(bin, '#!/bin/sh\necho "nginx version: nginx/1.18.0" >&2\n');
    await chmod(bin, 0o755);
    const found = await checkNginx(bin, { systemConfig: undefined, prefix: folder });
    expect(findingOf(found, /^NGINX_BIN: .* is 1\.18\.0$/)).toBe('missing');
  });
});
