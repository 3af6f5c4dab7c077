import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { insidePolicyName } from '../../../base/ownership.ts';
import { containersApplier } from '../../../gitops/appliers/containers/applier.ts';
import { processRuntime } from '../../../gitops/appliers/containers/process/runtime.ts';
import { processCaOf } from '../../../gitops/appliers/containers/trusted-cas.ts';
import type { Applier } from '../../../gitops/appliers/contract.ts';
import { certificatesByMode } from '../../../gitops/appliers/proxy/certificates.ts';
import { embeddedBackend } from '../../../gitops/appliers/proxy/embedded/backend.ts';
import { policyApplier } from '../../../gitops/appliers/proxy/policy-applier.ts';
import { TAG_SERVER_ENTRY } from '../../../sites/local/demo/tag-server/entry.ts';
import { openInsideCas } from '../../../sites/local/inside-cas.ts';
import type { ContainerSpec, LoadedManifest } from '../../../sites/manifest/containers.ts';
import { joinPolicies } from '../../../sites/manifest/policy/policy-script.ts';
import { policyTokens } from '../../../sites/manifest/policy/policy-token.ts';
import { containersSettings, slotUrl } from '../../support/containers/stage.ts';
import { loadedManifest } from '../../support/manifest.ts';
import { IDENTITY, proxyHome } from '../../support/proxy/proxy.ts';

/** The policy and the containers of one host, applied in the order of the daemon. */
async function start(subnet: string) {
  const home = await proxyHome();
  const dir = await mkdtemp(join(tmpdir(), 'tagyard-policy-'));
  const inside = await openInsideCas(join(dir, 'inside'));
  const certificates = certificatesByMode({ files: home.ca, inside });
  const backend = embeddedBackend({ ...home.settings, certificates });
  const { tlsPort } = await backend.start();
  const settings = {
    ...containersSettings('test', subnet, { identity: IDENTITY, originPort: tlsPort }),
    policyScripts: {
      nameOf: (site: string) => `${insidePolicyName(IDENTITY, site)}.localhost`,
      tokenOf: policyTokens('an age identity'),
    },
  };
  const runtime = processRuntime({
    entry: TAG_SERVER_ENTRY,
    stopGraceSeconds: 1,
    caFileOf: processCaOf(undefined, inside),
  });
  const policies = policyApplier({ backend, identity: IDENTITY, containers: settings });
  const containers = containersApplier(settings, runtime);
  const { signal } = new AbortController();
  const pass = async (applier: Applier<never, never>, manifest: LoadedManifest) => {
    const desired = applier.desired(manifest);
    const { changes } = applier.plan(desired, await applier.observe(desired, signal));
    for (const op of ['create', 'update', 'delete']) {
      for (const change of changes.filter((one) => one.op === op)) await applier.apply(change, signal);
    }
    return changes.map(({ op, key }) => `${op} ${key.split('/').slice(0, 2).join('/')}`).sort();
  };
  return {
    async apply(manifest: LoadedManifest) {
      const done = await pass(policies as never, manifest); // an applier gets only its own changes
      return [...done, ...(await pass(containers as never, manifest))];
    },
    processing(manifest: LoadedManifest): ContainerSpec {
      const spec = containers.desired(manifest).find((one) => one.spec.role === 'processing')?.spec;
      if (spec === undefined) throw new Error('no processing container');
      return spec;
    },
    async close() {
      await runtime.close();
      await backend.close();
      await home.remove();
      await rm(dir, { recursive: true });
    },
  };
}

let host: Awaited<ReturnType<typeof start>>;
beforeAll(async () => {
  host = await start('127.84');
});
afterAll(() => host?.close());

const manifest = loadedManifest('shop', 0);
const withScripts = (...scripts: string[]): LoadedManifest => {
  const policy = joinPolicies(scripts);
  return policy === null ? manifest : { ...manifest, policy };
};

/** The names of the cookies that the tag server's GA4 client sets. */
async function cookies(of: LoadedManifest): Promise<string[]> {
  const answer = await request(`${slotUrl(host.processing(of))}/g/collect?v=2`, { method: 'POST' });
  await answer.body.dump();
  const set = [answer.headers['set-cookie'] ?? []].flat();
  return set.map((cookie) => cookie.split('=')[0] ?? '');
}

const refuses = (name: string) =>
  `function check(container, permission, data) { return data.name !== '${name}'; }
   gtag('policy', 'set_cookies', check); // the same name in both scripts`;

test('a container reads its site’s policy script when it starts, and refuses what the script refuses', async () => {
  expect(await host.apply(manifest)).toEqual(['create shop/preview', 'create shop/processing']);
  expect(await cookies(manifest)).toEqual(['FPID', 'FPLC']);

  const first = withScripts(refuses('FPID'));
  expect(await host.apply(first)).toEqual([
    'create shop/policy',
    'create shop/processing',
    'delete shop/processing',
  ]);
  expect(await cookies(first)).toEqual(['FPLC']);
  expect(await host.apply(first)).toEqual([]);

  const both = withScripts(refuses('FPID'), refuses('FPLC'));
  expect(await host.apply(both)).toEqual([
    'update shop/policy',
    'create shop/processing',
    'delete shop/processing',
  ]);
  expect(await cookies(both)).toEqual([]);

  await host.apply(manifest);
  expect(await cookies(manifest)).toEqual(['FPID', 'FPLC']);
});
