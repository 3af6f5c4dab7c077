import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { operationSchema, shownSiteSchema } from '../../../gitops/report/report.ts';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { encryptSecret } from '../../../sites/manifest/secrets.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo } from '../../../sites/repo/sites-repo.ts';
import {
  EMULATOR_SCRIPT,
  EMULATOR_TOKEN,
  EMULATOR_ZONE,
  startEmulator,
  type TestEmulator,
} from '../../support/cloudflare/emulator.ts';
import { eventually } from '../../support/eventually.ts';
import { TARGETS } from '../../support/gitops/targets.ts';
import { manifestInput } from '../../support/manifest.ts';
import { containerConfig } from '../../support/tag-server.ts';

/**
 * An applier as the README describes it, in a copy of the sources: the folder `notes` and a line in the list. It keeps
 * a file for each site.
 */
const FOLDER: Readonly<Record<string, string>> = {
  'settings.ts': `
    import { z } from 'zod';
    export const notesSettings = z.object({ NOTES_DIR: z.string() });`,
  'desired.ts': `
    import { contentHash } from '../../../base/ownership.ts';
    import type { Manifest } from '../../../sites/manifest/schema.ts';
    import type { Resource, Traits } from '../contract.ts';
    export const NOTES = { target: 'notes' } as const satisfies Traits;
    export function desiredNotes({ site, name, adopt }: Manifest): Resource<string>[] {
      return [{ target: NOTES.target, site, key: site, hash: contentHash(name), summary: 'a note', adopt, spec: name }];
    }`,
  'applier.ts': `
    import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
    import { join } from 'node:path';
    import { formatMark, type Identity, readMark } from '../../../base/ownership.ts';
    import type { Applier } from '../contract.ts';
    import { planResources } from '../plan.ts';
    import { desiredNotes, NOTES } from './desired.ts';
    export function notesApplier(directory: string, identity: Identity): Applier<string, string> {
      return {
        ...NOTES,
        desired: desiredNotes,
        observe: async () =>
          await Promise.all((await readdir(directory)).map(async (key) => {
            const mark = await readFile(join(directory, key), 'utf8');
            return { target: NOTES.target, key, ref: key, ...readMark(identity, mark) };
          })),
        plan: planResources,
        async apply({ key, site, desired }) {
          if (desired === undefined) await rm(join(directory, key), { force: true });
          else await writeFile(join(directory, key), formatMark(identity, site, desired.hash));
        },
      };
    }`,
  'index.ts': `
    import type { Identity } from '../../../base/ownership.ts';
    import type { Registration } from '../registration.ts';
    import { notesApplier } from './applier.ts';
    import { NOTES } from './desired.ts';
    import { notesSettings } from './settings.ts';
    export const notes: Registration<typeof notesSettings, { readonly identity: Identity }> = {
      ...NOTES,
      settings: notesSettings,
      create: ({ NOTES_DIR }, { identity }) => notesApplier(NOTES_DIR, identity),
    };`,
};
const DEADLINE = { timeoutMs: 60_000 };
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

let dir: string;
let emulator: TestEmulator;
let ageIdentity: string;
let child: ChildProcess | undefined;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'tagyard-registration-'));
  emulator = await startEmulator();
  ageIdentity = await generateIdentity();
  await initSitesRepo(join(dir, 'sites.git'));
  writeFileSync(join(dir, 'identity'), `${ageIdentity}\n`);
  mkdirSync(join(dir, 'notes'));
});
afterEach(async () => {
  child?.kill('SIGKILL');
  await emulator.close();
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});

/** The copy of the sources with the new applier in it; returns its root. */
function extendedSources(): string {
  const root = join(dir, 'tagyard');
  for (const name of ['base', 'gitops', 'plugins', 'edge', 'sites', 'package.json']) {
    cpSync(join(ROOT, name), join(root, name), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  const appliers = join(root, 'gitops', 'appliers');
  mkdirSync(join(appliers, 'notes'));
  for (const [name, text] of Object.entries(FOLDER)) writeFileSync(join(appliers, 'notes', name), text);
  const list = join(appliers, 'index.ts');
  const text = readFileSync(list, 'utf8').replace('dns] as const', 'dns, notes] as const');
  writeFileSync(list, `import { notes } from './notes/index.ts';\n${text}`);
  return root;
}

function start(root: string, extra: NodeJS.ProcessEnv = {}) {
  const env = {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    TAGYARD_INSTANCE: 'listed',
    HOST_NAME: 'tag-9',
    HOST_ADDRESS: '198.51.100.9',
    SITES_REPO: join(dir, 'sites.git'),
    STATE_DIR: join(dir, 'state'),
    AGE_IDENTITY_FILE: join(dir, 'identity'),
    INFRA_SECRET: 'secret',
    HOP_SECRET: 'a-hop-secret-of-a-test',
    PROVISIONER_PORT: '0',
    DRAIN_SECONDS: '0',
    CLOUDFLARE_API_URL: emulator.url,
    CLOUDFLARE_API_TOKEN: EMULATOR_TOKEN,
    CLOUDFLARE_ACCOUNT_ID: emulator.account,
    CLOUDFLARE_ZONE_ID: emulator.zone.id,
    EDGE_ROUTE_MODE: 'site',
    EDGE_DOMAIN: EMULATOR_ZONE,
    EDGE_SCRIPT_NAME: EMULATOR_SCRIPT,
    PROXY_DRIVER: 'embedded',
    PROXY_LISTEN: '127.0.0.1',
    PROXY_HTTP_PORT: '0',
    PROXY_TLS_PORT: '0',
    EDGE_UPSTREAM: 'http://127.0.0.1:9',
    LOCAL_CA_DIR: join(dir, 'ca'),
    CONTAINERS_DRIVER: 'process',
    LOOPBACK_SUBNET: '127.95',
    LOG_LEVEL: 'warn',
    NOTES_DIR: join(dir, 'notes'),
    DRIFT_MODES: 'notes=warn',
    ...extra,
  };
  child = fork(join(root, 'gitops', 'main.ts'), {
    cwd: root,
    env,
    silent: true,
  });
  child.stdout?.resume();
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const ended = once(child, 'exit').then(() => errors);
  return { message: once(child, 'message').then(([message]) => message), ended };
}

test('an applier is one folder and one line: planned, applied, shown, and removed in reverse order', async () => {
  const root = extendedSources();
  const { ended } = start(root, { DRIFT_MODES: 'tape=warn' });
  expect(await ended).toContain(
    'tape is not one of the targets network, policy, containers, proxy, kv, route, dns, notes',
  );

  const repo = await openSitesRepo({ url: join(dir, 'sites.git'), cacheDir: dir });
  const cipher = await encryptSecret(await identityToRecipient(ageIdentity), containerConfig());
  const manifest = manifestInput('acme', 95, { host: 'tag-9', containerConfig: cipher });
  await repo.commit({
    site: 'acme',
    edit: () => formatManifest(manifest),
    subject: 'By hand',
    author: { name: 'Op', email: 'op@example.test' },
    trailers: {},
  });
  mkdirSync(join(dir, 'state'));
  writeFileSync(join(dir, 'state', 'freeze'), 'until the plan was read');
  const { message, ended: ending } = start(root);
  const ready = await Promise.race([message, ending.then((errors) => Promise.reject(new Error(errors)))]);
  const call = async (method: 'GET' | 'POST', path: string, body?: object) => {
    const headers = { 'x-secret': 'secret', ...(body && { 'content-type': 'application/json' }) };
    const response = await fetch(`${ready.url}${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    return await response.text();
  };

  const plan = JSON.parse(await call('POST', '/plan'));
  expect([...new Set(plan.changes.map(({ target }: { target: string }) => target))]).toEqual([
    ...TARGETS,
    'notes',
  ]);

  rmSync(join(dir, 'state', 'freeze'));
  await call('POST', '/sync');
  await eventually(async () => {
    const { ready: isReady, resources } = shownSiteSchema.parse(JSON.parse(await call('GET', '/sites/acme')));
    expect(resources).toContainEqual(
      expect.objectContaining({ target: 'notes', key: 'acme', state: 'applied' }),
    );
    expect(isReady).toBe(true);
  }, DEADLINE);
  expect(readdirSync(join(dir, 'notes'))).toEqual(['acme']);
  expect(await call('GET', '/metrics')).toContain('tagyard_resources{target="notes",state="applied"} 1');

  const { operation } = JSON.parse(await call('POST', '/deprovision?wait=60', { site: 'acme' }));
  const { status, steps } = operationSchema.parse(
    JSON.parse(await call('GET', `/operations/${operation.id}`)),
  );
  expect(status).toBe('succeeded');
  expect([...new Set(steps.map(({ target }) => target))]).toEqual([...TARGETS, 'notes'].toReversed());
  expect(readdirSync(join(dir, 'notes'))).toEqual([]);
}, 120_000);
