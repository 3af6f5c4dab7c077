import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TerminalError } from '../../../base/errors.ts';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { encryptSecret } from '../../../sites/manifest/secrets.ts';
import { parseServiceAccount } from '../../../sites/manifest/service-account.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon, SECRET } from '../../support/gitops/memory-daemon.ts';
import { manifestInput } from '../../support/manifest.ts';
import { serviceAccountJson } from '../../support/service-account.ts';

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
  test('commits a provisioned manifest and applies it to all targets', async () => {
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

  test('makes no commit if only the encryption of the config differs', async () => {
    const first = await call('POST', '/provision?wait=10', manifest('acme', 1));
    const again = await encryptSecret(daemon.recipient, 'aWQ9R1RNLVg=');
    const second = await call('POST', '/provision?wait=10', {
      ...manifest('acme', 1),
      containerConfig: again,
    });
    expect(second.body.revision).toBe(first.body.revision);
  });

  test('makes no commit if only a site’s secrets are encrypted anew, and one for another secret', async () => {
    const keyOf = async (id: string) => {
      const verdict = parseServiceAccount(serviceAccountJson({ private_key_id: id }));
      if (!verdict.ok) throw new Error(verdict.problem);
      return { ...verdict.facts, key: await encryptSecret(daemon.recipient, verdict.text) };
    };
    const provision = async (id: string) =>
      await call('POST', '/provision?wait=10', { ...manifest('acme', 1), serviceAccount: await keyOf(id) });
    const first = await provision('key-1');
    expect(first).toMatchObject({ status: 200, body: { operation: { status: 'succeeded' } } });
    expect((await provision('key-1')).body.revision).toBe(first.body.revision);
    const other = await provision('key-2');
    expect(other.body.revision).not.toBe(first.body.revision);
    // The secret that is the same keeps its ciphertext in git.
    const before = await daemon.repo.readSite(first.body.revision, 'acme');
    const after = await daemon.repo.readSite(other.body.revision, 'acme');
    const configOf = (text = '') => /containerConfig: \|[\s\S]*?END AGE[^\n]*/.exec(text)?.[0];
    expect(configOf(after?.text)).toBe(configOf(before?.text));
    expect(configOf(after?.text)).toContain('BEGIN AGE');
  });

  test('applies a commit that no request announces, and a revert of a removal', async () => {
    await push('acme', manifest('acme', 1));
    await reaches('acme', 'Ready');
    expect(await call('POST', '/deprovision?wait=10', { site: 'acme' })).toMatchObject({ status: 200 });
    await reaches('acme', 'Removed');
    expect(daemon.objectCount('acme')).toBe(0);
    await push('acme', manifest('acme', 1));
    await reaches('acme', 'Ready');
    expect(daemon.objectCount('acme')).toBeGreaterThan(0);
  });

  test('changes nothing of a site with an invalid manifest, and reports file, line and path', async () => {
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

  test('says in the status what a change waits for, as long as it waits', async () => {
    const seen: (string | undefined)[] = [];
    daemon.control.before = ({ target }, progress) => {
      if (target !== 'containers') return;
      for (const message of ['waits for room', '']) {
        progress(message);
        seen.push(daemon.loop.status('acme')?.message);
      }
    };
    await push('acme', manifest('acme', 1));
    await reaches('acme', 'Ready');
    expect(seen).toEqual([
      expect.stringMatching(/^\d+ changes; waits for room$/),
      expect.stringMatching(/^\d+ changes$/),
    ]);
  });

  test('skips the later steps of a failing site, and applies the other sites', async () => {
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

  test('removes nothing when the desired state becomes empty, until it is approved', async () => {
    await push('acme', manifest('acme', 1));
    await reaches('acme', 'Ready');
    await push('acme', null);
    const status = await reaches('acme', 'Blocked');
    expect(daemon.objectCount('acme')).toBeGreaterThan(0);
    const plan = await call('POST', '/plan', {});
    expect(plan.body.blocked).toMatchObject([{ reason: 'empty_desired_state' }]);
    expect(status?.message).toContain(plan.body.checksum);
    expect(status?.heldRemoval).toBe(`Blocked: ${status?.message}`);
    expect((await call('GET', '/sites/acme')).body.state).toMatchObject({
      name: 'change_refused',
      also: ['serving'],
      detail: status?.heldRemoval,
    });
    expect(await call('POST', '/approve', { checksum: 'ffff' })).toMatchObject({ status: 409 });
    expect(await call('POST', '/approve', { checksum: plan.body.checksum })).toMatchObject({ status: 202 });
    expect((await reaches('acme', 'Removed'))?.heldRemoval).toBeUndefined();
    expect(daemon.objectCount('acme')).toBe(0);
  });

  test('removes nothing while a target can’t be observed', async () => {
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

  test('keeps a contested name with the site that claimed it first', async () => {
    await push('acme', manifest('acme', 1));
    await reaches('acme', 'Ready');
    await push('rival', manifest('rival', 2, { hostnames: manifest('acme', 1).hostnames }));
    expect(await reaches('rival', 'NameTaken')).toMatchObject({
      message: expect.stringContaining('site acme, which claimed it first'),
    });
    expect(daemon.loop.status('acme')).toMatchObject({ ready: true });
  });

  test('keeps a name with the site that took it after a removal, even if that is reverted', async () => {
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

  test('gives a name to the site that claimed it first, even if that site is younger', async () => {
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

  test('answers a plan without applying it', async () => {
    await push('acme', manifest('acme', 1));
    await reaches('acme', 'Ready');
    expect((await call('POST', '/plan', {})).body).toMatchObject({ changes: [], blocked: [] });
    expect(await call('POST', '/plan', { ref: 'nowhere' })).toMatchObject({
      status: 404,
      body: { code: 'unknown_ref' },
    });
  });
});

describe('the HTTP interface', () => {
  test.each([
    ['no secret', {}, 401, 'wrong_secret'],
    ['a wrong secret', { 'x-secret': 'nope' }, 401, 'wrong_secret'],
  ])('refuses %s', async (_what, headers, status, code) => {
    const answer = await daemon.app.inject({ method: 'GET', url: '/sites', headers });
    expect({ status: answer.statusCode, code: answer.json().code }).toEqual({ status, code });
    expect(answer.headers['content-type']).toMatch('application/problem+json');
    expect(answer.headers['x-request-id']).toBeTruthy();
  });

  test('answers an undecodable path with a problem document', async () => {
    const answer = await daemon.app.inject({
      method: 'GET',
      url: '/sites/%ff',
      headers: { 'x-secret': SECRET },
    });
    expect({ status: answer.statusCode, code: answer.json().code }).toEqual({
      status: 400,
      code: 'malformed_request',
    });
    expect(answer.headers['content-type']).toMatch('application/problem+json');
    expect(answer.headers['x-request-id']).toBe(answer.json().requestId);
  });

  test('treats an empty JSON body as no body, and refuses it where the route needs one', async () => {
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
    ['not a host name', '*.acme.example', 400, 'malformed_request', 'domain'],
    ['a URL with a port', 'https://acme.example:8443/', 400, 'malformed_request', 'domain'],
  ])('names the field at fault for a custom domain that is %s', async (_what, domain, status, code, path) => {
    const { hostnames } = manifest('acme', 1);
    await call(
      'POST',
      '/provision?wait=10',
      manifest('acme', 1, { hostnames: { ...hostnames, edge: 'acme-two.example.net' } }),
    );
    const answer = await call('POST', '/custom-domain', { site: 'acme', domain });
    expect(answer).toMatchObject({ status, body: { code, errors: [{ path }] } });
    expect(answer.body.errors).toHaveLength(1);
    expect(answer.body).not.toHaveProperty('detail');
  });

  test.each([
    ['an unknown member', '/deprovision', { site: 'acme', force: true }, 400, 'malformed_request'],
    ['an unknown site', '/deprovision', { site: 'acme' }, 404, 'unknown_site'],
    ['an invalid manifest', '/provision', { version: 1 }, 422, 'invalid_manifest'],
    ['another host’s manifest', '/provision', manifestInput('acme', 1, { host: 'tag-2' }), 422, 'wrong_host'],
    [
      'a custom domain of an unknown site',
      '/custom-domain',
      { site: 'acme', domain: 'x.example' },
      404,
      'unknown_site',
    ],
  ])('answers %s with its code', async (_what, url, body, status, code) => {
    expect(await call('POST', url, body)).toMatchObject({ status, body: { code } });
  });

  test('names each unknown member of a body', async () => {
    const { body } = await call('POST', '/deprovision', { site: 'acme', force: true, now: 1 });
    expect(body.errors.map(({ path }: { path: string }) => path)).toEqual(['force', 'now']);
  });

  test('commits nothing for a refused request', async () => {
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

  test('removes nothing for a late deprovisioning of a site that is live in git', async () => {
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
    expect(await call('POST', '/deprovision', { site: 'missing', commit: false })).toMatchObject({
      status: 404,
    });
  });

  test('lets no late call for an older revision undo a newer removal', async () => {
    const { revision } = await push('acme', manifest('acme', 1));
    const late = () => call('POST', `/provision?revision=${revision}&wait=10`, manifest('acme', 1));
    // Git has the site: nothing is committed, even if an operator has changed it since.
    await push('acme', manifest('acme', 1, { name: 'By hand' }));
    const head = await daemon.repo.head();
    expect(await late()).toMatchObject({ status: 200, body: { revision: head } });
    await push('acme', manifest('acme', 1, { state: 'absent' }));
    const removed = await daemon.repo.head();
    expect(await late()).toMatchObject({ status: 409, body: { code: 'superseded' } });
    await reaches('acme', 'Removed');
    await push('acme', null);
    expect(await late()).toMatchObject({ status: 409, body: { code: 'superseded' } });
    const other = '5b0a6679-7425-40de-944b-e07fc1f90001';
    await push('acme', manifest('acme', 1, { container: other }));
    expect(await late()).toMatchObject({ status: 409, body: { code: 'superseded' } });
    const subjects = (await daemon.repo.history('acme')).map(({ subject }) => subject);
    expect([removed === null, new Set(subjects)]).toEqual([false, new Set(['By hand'])]);
  });

  test('refuses to deprovision a protected site', async () => {
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
