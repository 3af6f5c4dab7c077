import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { copyFile, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { request } from 'undici';
import { z } from 'zod';
import { stopNginx } from '../../gitops/appliers/proxy/nginx/process.ts';
import { operationSchema, planReportSchema, shownSiteSchema } from '../../gitops/report/report.ts';
import { ensureLocalCa } from '../../sites/local/local-ca.ts';
import { formatManifest } from '../../sites/manifest/load.ts';
import type { ManifestInput } from '../../sites/manifest/schema.ts';
import { encryptSecret } from '../../sites/manifest/secrets.ts';
import { initSitesRepo } from '../../sites/repo/mirror.ts';
import { openSitesRepo } from '../../sites/repo/sites-repo.ts';
import { EMULATOR_SCRIPT, EMULATOR_TOKEN, EMULATOR_ZONE } from '../support/cloudflare/emulator.ts';
import { eventually } from '../support/eventually.ts';
import { ALLOCATOR, V8_OPTIONS } from '../support/gitops/provisioner-options.ts';
import { manifestInput } from '../support/manifest.ts';
import { NGINX } from '../support/proxy/nginx.ts';
import { HOP_SECRET } from '../support/proxy/proxy.ts';
import { containerConfig } from '../support/tag-server.ts';
import { processMiB } from './memory.ts';

const EMULATOR = fileURLToPath(new URL('gitops-emulator.ts', import.meta.url));
const COLLECTED = fileURLToPath(new URL('collected.ts', import.meta.url));
const PROVISIONER = fileURLToPath(new URL('../../gitops/main.ts', import.meta.url));
const SECRET = 'an infra secret';
const author = { name: 'Bench', email: 'bench@example.net' };
const emulatorAnswer = z.object({ url: z.string(), account: z.string(), zoneId: z.string() });
const edited = z.object({ operation: z.object({ url: z.string() }) });
const portsFile = z.object({ tlsPort: z.number() });

interface HostBedOptions {
  readonly instance: string;
  readonly loopbackSubnet: string;
  readonly image: string;
  /** `true`: a remote sites repository, which can become unreachable. Default: a local folder. */
  readonly isRemote?: boolean;
}

/** A whole host: the provisioner as it runs in production, with Docker and nginx; only Cloudflare is an emulator. */
export async function hostBed({ instance, loopbackSubnet, image, isRemote = false }: HostBedOptions) {
  await using stack = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), 'tagyard-host-'));
  stack.defer(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));
  const emulator = fork(EMULATOR, { execArgv: [] });
  stack.defer(() => end(emulator, 'SIGKILL'));
  const cloudflare = emulatorAnswer.parse((await once(emulator, 'message'))[0]);
  const sitesRepo = join(dir, 'sites.git');
  await initSitesRepo(sitesRepo);
  const repo = await openSitesRepo({ url: sitesRepo, cacheDir: dir });
  const ageIdentity = await generateIdentity();
  writeFileSync(join(dir, 'age-identity'), ageIdentity, { mode: 0o600 });
  const cipher = await encryptSecret(await identityToRecipient(ageIdentity), containerConfig());

  const tls = await wildcard(join(dir, 'tls'));
  const run = () =>
    fork(PROVISIONER, {
      execArgv: [...V8_OPTIONS, '--expose-gc', '--import', COLLECTED],
      env: {
        PATH: process.env.PATH,
        ...ALLOCATOR,
        TAGYARD_INSTANCE: instance,
        SITES_REPO: isRemote ? pathToFileURL(sitesRepo).href : sitesRepo,
        SITES_POLL_SECONDS: '1',
        STATE_DIR: join(dir, 'state'),
        INFRA_SECRET: SECRET,
        HOP_SECRET,
        PROVISIONER_PORT: '0',
        AGE_IDENTITY_FILE: join(dir, 'age-identity'),
        CLOUDFLARE_API_URL: cloudflare.url,
        CLOUDFLARE_API_TOKEN: EMULATOR_TOKEN,
        CLOUDFLARE_ACCOUNT_ID: cloudflare.account,
        CLOUDFLARE_ZONE_ID: cloudflare.zoneId,
        CLOUDFLARE_RATE: '1000',
        EDGE_DOMAIN: EMULATOR_ZONE,
        EDGE_SCRIPT_NAME: EMULATOR_SCRIPT,
        HOST_ADDRESS: '198.51.100.4',
        NGINX_BIN: NGINX,
        PROXY_LISTEN: '127.0.0.1',
        PROXY_HTTP_PORT: '0',
        PROXY_TLS_PORT: '0',
        EDGE_UPSTREAM: 'http://127.0.0.1:9',
        TLS_DIR: tls,
        LOOPBACK_SUBNET: loopbackSubnet,
        DRAIN_SECONDS: '0',
        PREVIEW_IDLE_SECONDS: '5',
        LOG_LEVEL: 'error',
      },
    });
  let provisioner = run();
  stack.defer(async () => {
    await end(provisioner, 'SIGTERM');
    await stopNginx(join(dir, 'state', 'proxy'));
  });
  let url = await readyUrl(provisioner);
  const { tlsPort } = portsFile.parse(
    JSON.parse(await readFile(join(dir, 'state', 'proxy', 'ports.json'), 'utf8')),
  );

  async function call(method: 'GET' | 'POST', path: string, body?: object): Promise<unknown> {
    const answer = await request(`${url}${path}`, {
      method,
      headers: { 'x-secret': SECRET, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headersTimeout: 120_000,
    });
    const json: unknown = await answer.body.json();
    if (answer.statusCode >= 300) throw new Error(`${path}: ${answer.statusCode} ${JSON.stringify(json)}`);
    return json;
  }
  const owned = stack.move();
  return {
    /** What the daemon's own process holds, without nginx, the containers and garbage. */
    async memoryMiB(): Promise<number> {
      const collected = once(provisioner, 'message');
      provisioner.send('collect');
      await collected;
      return processMiB(provisioner.pid ?? 0);
    },
    endpoint: { address: '127.0.0.1', httpPort: 0, tlsPort },
    manifest: (number: number, extra: Partial<ManifestInput> = {}): ManifestInput =>
      manifestInput(`bench-${number}`, number, { image, containerConfig: cipher, ...extra }),
    /** Commits all these manifests, in one push. */
    async push(manifests: readonly ManifestInput[]): Promise<void> {
      await Promise.all(
        manifests.map((one) =>
          repo.commit({
            site: one.site,
            edit: () => formatManifest(one),
            subject: 'By hand',
            author,
            trailers: {},
          }),
        ),
      );
    },
    async reach(sites: readonly string[], reason: 'Ready' | 'Removed'): Promise<void> {
      await eventually(
        async () => {
          const schema = z.object({ sites: z.array(shownSiteSchema) });
          const found = schema.parse(await call('GET', '/sites')).sites;
          const other = sites.find((site) => found.find((one) => one.site === site)?.reason !== reason);
          if (other !== undefined) throw new Error(JSON.stringify(found.find(({ site }) => site === other)));
        },
        { timeoutMs: 600_000, intervalMs: 100 },
      );
    },
    /** Does the work once the provisioner has noticed that the remote sites repository can't be reached. */
    async withoutGit<T>(work: () => Promise<T>): Promise<T> {
      renameSync(sitesRepo, `${sitesRepo}.away`);
      try {
        await eventually(
          async () => {
            const { problem } = z
              .object({ problem: z.nullable(z.string()) })
              .parse(await call('GET', '/sites'));
            if (problem === null) throw new Error('the provisioner still reads the repository');
          },
          { timeoutMs: 120_000, intervalMs: 100 },
        );
        return await work();
      } finally {
        renameSync(`${sitesRepo}.away`, sitesRepo);
      }
    },
    /** Ends the provisioner and starts it again. Resolves when it has observed everything. */
    async restart(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
      await end(provisioner, signal);
      provisioner = run();
      url = await readyUrl(provisioner);
      await eventually(() => call('GET', '/readyz'), { timeoutMs: 120_000, intervalMs: 100 });
    },
    /** A full observation and plan; returns the number of changes. */
    async plan(): Promise<number> {
      return planReportSchema.parse(await call('POST', '/plan', {})).changes.length;
    },
    /** Gives a site an image, and waits until the old containers are gone. */
    async swap(site: string, to: string): Promise<void> {
      const { operation } = edited.parse(await call('POST', `/sites/${site}/image`, { image: to }));
      await eventually(
        async () => {
          const { status, reason } = operationSchema.parse(await call('GET', operation.url));
          if (status !== 'succeeded') throw new Error(reason ?? status);
        },
        { timeoutMs: 180_000, intervalMs: 50 },
      );
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
export type HostBed = Awaited<ReturnType<typeof hostBed>>;

/** `tls: files` with one certificate for all, as a host with a wildcard has it. */
async function wildcard(dir: string): Promise<string> {
  const ca = await ensureLocalCa(join(dir, 'ca'));
  const { cert, key } = await ca.pathsFor(`*.${EMULATOR_ZONE}`);
  await Promise.all([
    copyFile(cert, join(dir, `_.${EMULATOR_ZONE}.pem`)),
    copyFile(key, join(dir, `_.${EMULATOR_ZONE}.key`)),
  ]);
  return dir;
}

async function readyUrl(provisioner: ChildProcess): Promise<string> {
  const [ready] = await Promise.race([
    once(provisioner, 'message'),
    once(provisioner, 'exit').then(() =>
      Promise.reject(new Error('the provisioner ended before it was ready')),
    ),
  ]);
  return z.object({ url: z.string() }).parse(ready).url;
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill(signal);
  await gone;
}
