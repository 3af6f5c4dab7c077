import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TerminalError } from '../../../gitops/base/errors.ts';
import { formatManifest } from '../../../gitops/manifest/load.ts';
import { encryptSecret } from '../../../gitops/manifest/secrets.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon, SECRET } from '../../support/gitops/memory-daemon.ts';
import { manifestInput } from '../../support/manifest.ts';

let daemon: MemoryDaemon;
beforeEach(async () => {
  daemon = await memoryDaemon();
});
afterEach(() => daemon.close());

const manifest: MemoryDaemon['manifest'] = (...args) => daemon.manifest(...args);
const call: MemoryDaemon['call'] = (...args) => daemon.call(...args);
const push: MemoryDaemon['push'] = (...args) => daemon.push(...args);
const reaches: MemoryDaemon['reaches'] = (...args) => daemon.reaches(...args);

describe('the daemon', () => {
  test('commits a provisioned manifest, applies it everywhere and says so', async () => {
    const answer = await call('POST', '/provision?wait=10', manifest('acme', 1));
    expect(answer).toMatchObject({
      status: 200,
      body: { site: 'acme', operation: { status: 'succeeded', kind: 'provision' } },
    });
    expect(await reaches('acme', 'Ready')).toMatchObject({ ready: true, applied: await daemon.repo.head() });
    expect(daemon.objectCount('acme')).toBeGreaterThan(0);
    const again = await call('POST', '/provision?wait=10', manifest('acme', 1));
    expect(again.body.revision).toBe(answer.body.revision);
    expect(await daemon.repo.history('acme')).toHaveLength(1);
  });

  test('makes no commit for the same config encrypted again', async () => {
    const first = await call('POST', '/provision?wait=10', manifest('acme', 1));
    const again = await encryptSecret(daemon.recipient, 'aWQ9R1RNLVg=');
    const second = await call('POST', '/provision?wait=10', {
      ...manifest('acme', 1),
      containerConfig: again,
    });
    expect(second.body.revision).toBe(first.body.revision);
  });

  test('picks up a commit that nobody announced, and a revert of a removal', async () => {
    await push('acme', manifest('acme', 1));
    await reaches('acme', 'Ready');
    expect(await call('POST', '/deprovision?wait=10', { site: 'acme' })).toMatchObject({ status: 200 });
    await reaches('acme', 'Removed');
    expect(daemon.objectCount('acme')).toBe(0);
    await push('acme', manifest('acme', 1));
    await reaches('acme', 'Ready');
    expect(daemon.objectCount('acme')).toBeGreaterThan(0);
  });

  test('keeps a site with a broken manifest as it was, and says file, line and path', async () => {
    await push('acme', manifest('acme', 1));
    await reaches('acme', 'Ready');
    const before = daemon.objectCount('acme');
    await push('acme', formatManifest(manifest('acme', 1)).replace('ports:', 'prots:'));
    await push('other', manifest('other', 2));
    await reaches('other', 'Ready');
    expect(await reaches('acme', 'InvalidManifest')).toMatchObject({
      ready: false,
      message: expect.stringMatching(/acme\.yaml:\d+: prots: unknown key/),
    });
    expect(daemon.objectCount('acme')).toBe(before);
  });

  test('lets one failing site fail alone, and stops it before what depends on the failed step', async () => {
    daemon.control.fault = (target, at) =>
      target === 'proxy' && at !== 'observe' && at.site === 'acme'
        ? new TerminalError('nginx refuses it')
        : undefined;
    await push('acme', manifest('acme', 1));
    await push('other', manifest('other', 2));
    await reaches('other', 'Ready');
    expect(await reaches('acme', 'Failed')).toMatchObject({
      message: expect.stringContaining('nginx refuses it'),
    });
    expect(daemon.of('containers', 'acme')).toHaveLength(1);
    expect(daemon.of('dns', 'acme')).toHaveLength(0);
  });

  test('removes nothing when the whole desired state vanishes, until somebody approves', async () => {
    await push('acme', manifest('acme', 1));
    await reaches('acme', 'Ready');
    await push('acme', null);
    const status = await reaches('acme', 'Blocked');
    expect(daemon.objectCount('acme')).toBeGreaterThan(0);
    const plan = await call('POST', '/plan', {});
    expect(plan.body.blocked).toMatchObject([{ reason: 'empty_desired_state' }]);
    expect(status?.message).toContain(plan.body.checksum);
    expect(await call('POST', '/approve', { checksum: 'ffff' })).toMatchObject({ status: 409 });
    expect(await call('POST', '/approve', { checksum: plan.body.checksum })).toMatchObject({ status: 202 });
    await reaches('acme', 'Removed');
    expect(daemon.objectCount('acme')).toBe(0);
  });

  test('changes nothing where a target can’t be read, and goes on when it can', async () => {
    await push('acme', manifest('acme', 1));
    await reaches('acme', 'Ready');
    daemon.control.fault = (target, at) =>
      target === 'dns' && at === 'observe' ? new Error('the zone answers 500') : undefined;
    expect(await call('POST', '/deprovision', { site: 'acme' })).toMatchObject({ status: 202 });
    await eventually(() => expect(daemon.loop.status('acme')?.message).toContain('the zone answers 500'));
    expect(daemon.objectCount('acme')).toBeGreaterThan(0);
    daemon.control.fault = () => undefined;
    daemon.loop.sync();
    await reaches('acme', 'Removed');
  });

  test('gives a contested name to the older site', async () => {
    await push('acme', manifest('acme', 1));
    await reaches('acme', 'Ready');
    await push('rival', manifest('rival', 2, { hostnames: manifest('acme', 1).hostnames }));
    expect(await reaches('rival', 'NameTaken')).toMatchObject({
      message: expect.stringContaining('site acme, which claimed it first'),
    });
    expect(daemon.loop.status('acme')).toMatchObject({ ready: true });
  });

  test('leaves a name with whom it was given after a removal, when the removal is reverted', async () => {
    await push('acme', formatManifest(manifest('acme', 1)));
    await reaches('acme', 'Ready');
    await push('acme', formatManifest(manifest('acme', 1, { state: 'absent' })));
    await reaches('acme', 'Removed');
    await push('heir', formatManifest(manifest('heir', 2, { hostnames: manifest('acme', 1).hostnames })));
    await reaches('heir', 'Ready');
    await push('acme', formatManifest(manifest('acme', 1)));
    await reaches('acme', 'NameTaken');
    expect(daemon.loop.status('heir')).toMatchObject({ ready: true });
    expect(daemon.objectCount('acme')).toBe(0);
  });

  test('takes no name from a younger site by naming it later', async () => {
    await push('acme', formatManifest(manifest('acme', 1)));
    await push(
      'rival',
      formatManifest(
        manifest('rival', 2, {
          domains: manifest('acme', 1, {}).domains.map((entry) => ({
            ...entry,
            domain: 'shop.acme.example',
            token: 'ct_another0token0001',
          })),
          customDomains: ['metrics.acme.example'],
        }),
      ),
    );
    await reaches('rival', 'Ready');
    await push('acme', formatManifest(manifest('acme', 1, { customDomains: ['metrics.acme.example'] })));
    await reaches('acme', 'NameTaken');
    expect(daemon.loop.status('rival')).toMatchObject({ ready: true });
  });

  test('plans without applying, also on a branch', async () => {
    await push('acme', manifest('acme', 1));
    await reaches('acme', 'Ready');
    expect((await call('POST', '/plan', {})).body).toMatchObject({ changes: [], blocked: [] });
    expect(await call('POST', '/plan', { ref: 'nowhere' })).toMatchObject({
      status: 404,
      body: { code: 'unknown_ref' },
    });
  });
});

describe('the provisioner’s door', () => {
  test.each([
    ['no secret', {}, 401, 'wrong_secret'],
    ['a wrong secret', { 'x-secret': 'nope' }, 401, 'wrong_secret'],
  ])('is shut to %s', async (_what, headers, status, code) => {
    const answer = await daemon.app.inject({ method: 'GET', url: '/sites', headers });
    expect({ status: answer.statusCode, code: answer.json().code }).toEqual({ status, code });
    expect(answer.headers['content-type']).toMatch('application/problem+json');
    expect(answer.headers['x-request-id']).toBeTruthy();
  });

  test('answers what the router can’t read with a problem too', async () => {
    const answer = await daemon.app.inject({ method: 'GET', url: '/sites/%ff' });
    expect({ status: answer.statusCode, code: answer.json().code }).toEqual({
      status: 400,
      code: 'malformed_request',
    });
    expect(answer.headers['content-type']).toMatch('application/problem+json');
    expect(answer.headers['x-request-id']).toBe(answer.json().requestId);
  });

  test('takes an empty JSON body for none, and refuses it where the route needs one', async () => {
    const headers = { 'x-secret': SECRET, 'content-type': 'application/json' };
    const send = (url: string) => daemon.app.inject({ method: 'POST', url, headers });
    expect((await send('/sync')).statusCode).toBe(202);
    expect((await send('/prune')).statusCode).toBe(200);
    const refused = await send('/deprovision');
    expect({ status: refused.statusCode, code: refused.json().code }).toEqual({
      status: 400,
      code: 'malformed_request',
    });
  });

  test.each([
    ['no host name', '*.acme.example', 400, 'malformed_request', 'domain'],
    ['nothing like one', 'https://acme.example/', 400, 'malformed_request', 'domain'],
    ['the site’s own hostname', 'tags.acme.example', 422, 'invalid_manifest', 'customDomains.0'],
  ])('says where a custom domain that is %s is wrong', async (_what, domain, status, code, path) => {
    const { hostnames } = manifest('acme', 1);
    await call(
      'POST',
      '/provision?wait=10',
      manifest('acme', 1, { hostnames: { ...hostnames, edge: 'tags.acme.example' } }),
    );
    const answer = await call('POST', '/custom-domain', { site: 'acme', domain });
    expect(answer).toMatchObject({ status, body: { code, errors: [{ path }] } });
    expect(answer.body.errors).toHaveLength(1);
    expect(answer.body).not.toHaveProperty('detail');
  });

  test.each([
    ['an unknown member', '/deprovision', { site: 'acme', force: true }, 400, 'malformed_request'],
    ['an unknown site', '/deprovision', { site: 'acme' }, 404, 'unknown_site'],
    ['a manifest with a fault', '/provision', { version: 1 }, 422, 'invalid_manifest'],
    ['another host’s manifest', '/provision', manifestInput('acme', 1, { host: 'tag-2' }), 422, 'wrong_host'],
    [
      'a custom domain of nobody',
      '/custom-domain',
      { site: 'acme', domain: 'x.example' },
      404,
      'unknown_site',
    ],
  ])('answers %s with its code', async (_what, url, body, status, code) => {
    expect(await call('POST', url, body)).toMatchObject({ status, body: { code } });
  });

  test('commits nothing of a request that it refuses', async () => {
    await call('POST', '/provision?wait=10', manifest('acme', 1));
    await call('POST', '/provision?wait=10', manifest('other', 2));
    const head = await daemon.repo.head();
    const domain = { site: 'acme', domain: 'metrics.acme.example' };
    expect(await call('POST', '/custom-domain?wait=999', domain)).toMatchObject({ status: 400 });
    const rival = manifest('third', 3, { hostnames: manifest('other', 2).hostnames });
    expect(await call('POST', '/provision', rival)).toMatchObject({
      status: 409,
      body: { code: 'name_taken' },
    });
    expect(await daemon.repo.head()).toBe(head);
  });

  test('takes nothing down for an order that git has overtaken', async () => {
    await call('POST', '/provision?wait=10', manifest('acme', 1));
    const head = await daemon.repo.head();
    const late = { site: 'acme', commit: false };
    expect(await call('POST', '/deprovision?wait=10', late)).toMatchObject({
      status: 200,
      body: { operation: { status: 'succeeded' } },
    });
    expect(await daemon.repo.head()).toBe(head);
    expect(daemon.loop.status('acme')).toMatchObject({ ready: true, reason: 'Ready' });
    await push('acme', manifest('acme', 1, { state: 'absent' }));
    await call('POST', '/deprovision?wait=10', late);
    await reaches('acme', 'Removed');
    expect(await call('POST', '/deprovision', { site: 'nobody', commit: false })).toMatchObject({
      status: 404,
    });
  });

  test('protects what the manifest protects', async () => {
    await call('POST', '/provision?wait=10', manifest('acme', 1, { protect: true }));
    expect(await call('POST', '/deprovision', { site: 'acme' })).toMatchObject({
      status: 409,
      body: { code: 'site_protected' },
    });
  });

  test('adds and removes a custom domain as commits, and refuses a foreign one', async () => {
    await call('POST', '/provision?wait=10', manifest('acme', 1));
    const domain = { site: 'acme', domain: 'Metrics.acme.example' };
    expect(await call('POST', '/custom-domain?wait=10', domain)).toMatchObject({ status: 200 });
    expect(
      await call('DELETE', '/custom-domain?site=acme&domain=metrics.acme.example&wait=10'),
    ).toMatchObject({ status: 200 });
    expect(await call('DELETE', '/custom-domain', domain)).toMatchObject({
      status: 200,
      body: { changed: false },
    });
    expect(
      await call('POST', '/custom-domain', { ...domain, domain: 'metrics.other.example' }),
    ).toMatchObject({
      status: 422,
      body: { code: 'foreign_domain' },
    });
    expect(await daemon.repo.history('acme')).toHaveLength(3);
  });
});
