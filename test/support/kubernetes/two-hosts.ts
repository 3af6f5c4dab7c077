import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { expect } from 'vitest';
import { formatManifest } from '../../../sites/manifest/load.ts';
import type { ManifestInput } from '../../../sites/manifest/schema.ts';
import { encryptFor } from '../../../sites/manifest/secrets.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../../sites/repo/sites-repo.ts';
import { NO_LIMITS, startEmulator, type TestEmulator } from '../cloudflare/emulator.ts';
import { manifestInput } from '../manifest.ts';
import { containerConfig } from '../tag-server.ts';
import { ProvisionerProcess } from './provisioner.ts';

/** The first is a machine, the second a cluster. */
export const HOSTS = ['tag-1', 'tag-2'] as const;
export type Host = (typeof HOSTS)[number];
const ADDRESSES: Readonly<Record<Host, string>> = {
  'tag-1': '198.51.100.4',
  'tag-2': '198.51.100.9',
};
/** The site that moves between them. */
export const MOVED_SITE = 'acme-shop';

interface DnsRecord {
  readonly name: string;
  readonly content: string;
  readonly comment: string | null;
}

/** A provisioner of a machine and one of a cluster, as processes, with one age identity and one Cloudflare. */
export class TwoHosts implements AsyncDisposable {
  readonly folder: string;
  readonly emulator: TestEmulator;
  /** The manifest of the site that moves; `open` doesn't commit it. */
  readonly manifest: ManifestInput;
  readonly #repo: SitesRepo;
  readonly #sitesRepo: string;
  readonly #ageIdentity: string;
  /** Of both provisioners. */
  readonly #env: NodeJS.ProcessEnv;
  readonly #provisioners = new Map<Host, ProvisionerProcess>();

  private constructor(
    parts: Pick<TwoHosts, 'folder' | 'emulator' | 'manifest'>,
    repo: { readonly opened: SitesRepo; readonly bare: string },
    shared: { readonly ageIdentity: string; readonly env: NodeJS.ProcessEnv },
  ) {
    this.folder = parts.folder;
    this.emulator = parts.emulator;
    this.manifest = parts.manifest;
    this.#repo = repo.opened;
    this.#sitesRepo = repo.bare;
    this.#ageIdentity = shared.ageIdentity;
    this.#env = shared.env;
  }

  /** Starts Cloudflare, and no provisioner. `image`: of all sites. `env`: settings of both provisioners. */
  static async open(image: string, env: NodeJS.ProcessEnv): Promise<TwoHosts> {
    const folder = await mkdtemp(join(tmpdir(), 'tagyard-hosts-'));
    // No limits: the calls of tests, which ask where names lead, count as well.
    const emulator = await startEmulator({ limits: NO_LIMITS });
    const bare = join(folder, 'sites.git');
    await initSitesRepo(bare);
    await mkdir(join(folder, 'own'));
    const opened = await openSitesRepo({ url: bare, cacheDir: join(folder, 'own') });
    const ageIdentity = await generateIdentity();
    const manifest = manifestInput(MOVED_SITE, 0, {
      image,
      resources: { processing: { replicas: { min: 1, max: 2 } } },
    });
    const configured = { ...manifest, containerConfig: await configOf(manifest, ageIdentity) };
    return new TwoHosts({ folder, emulator, manifest: configured }, { opened, bare }, { ageIdentity, env });
  }

  /** Returns the port at which the machine's proxy speaks TLS on 127.0.0.1. */
  async startMachine(): Promise<number> {
    await this.#start('tag-1', {
      HOST_ADDRESS: ADDRESSES['tag-1'],
      CONTAINERS_DRIVER: 'process',
      LOOPBACK_SUBNET: '127.91',
      PROXY_DRIVER: 'embedded',
      PROXY_LISTEN: '127.0.0.1',
      PROXY_HTTP_PORT: '0',
      PROXY_TLS_PORT: '0',
      LOCAL_CA_DIR: join(this.folder, 'ca'),
    });
    return JSON.parse(await readFile(join(this.folder, 'tag-1/state/proxy/ports.json'), 'utf8')).tlsPort;
  }

  async startCluster(env: NodeJS.ProcessEnv): Promise<void> {
    await this.#start('tag-2', {
      HOST_KIND: 'kubernetes',
      KUBERNETES_GATEWAY_ADDRESS: ADDRESSES['tag-2'],
      ...env,
    });
  }

  async #start(host: Host, env: NodeJS.ProcessEnv): Promise<void> {
    const folder = join(this.folder, host);
    await mkdir(folder, { recursive: true });
    const provisioner = await ProvisionerProcess.start({
      ...{ folder, emulator: this.emulator, secret: 'infra-s3cret' },
      ...{ sitesRepo: this.#sitesRepo, ageIdentity: this.#ageIdentity },
      env: {
        TAGYARD_INSTANCE: 'test',
        HOST_NAME: host,
        RECONCILE_INTERVAL_SECONDS: '5',
        DNS_RECORD_MODE: 'site',
        EDGE_UPSTREAM: 'http://127.0.0.1:9',
        ...this.#env,
        ...env,
      },
    });
    this.#provisioners.set(host, provisioner);
  }

  async killProvisioner(host: Host): Promise<void> {
    await this.#provisioners.get(host)?.kill();
  }

  /** A manifest with an encrypted configuration of its own: no two clients may have the same ciphertext. */
  async configured(input: ManifestInput): Promise<ManifestInput> {
    return { ...input, containerConfig: await configOf(input, this.#ageIdentity) };
  }

  async commit(input: ManifestInput, subject: string): Promise<void> {
    await this.#repo.commit({
      site: input.site,
      edit: () => formatManifest(input),
      subject,
      author: { name: 'Op', email: 'op@example.test' },
      trailers: {},
    });
  }

  /** Commits for each host a site that stays there: a host that loses its only site would wait for an approval. */
  async commitOthers(): Promise<void> {
    const { image, resources } = this.manifest;
    for (const [index, host] of HOSTS.entries()) {
      const own = manifestInput(`stays-${index}`, 1 + index, {
        host,
        client: `7c9e6679-7425-40de-944b-e07fc1f90be${index}`,
      });
      await this.commit(await this.configured({ ...own, image, resources }), 'Add a site that stays');
    }
  }

  async moveTo(host: Host): Promise<void> {
    await this.commit({ ...this.manifest, host }, `Move to ${host}`);
  }

  /** What a host's provisioner says of a site; `undefined`: it knows none. */
  async shown(host: Host, name = MOVED_SITE) {
    const sites = (await this.#provisioners.get(host)?.sites())?.sites;
    return sites?.find(({ site }) => site === name);
  }

  /** Throws unless the site is served by this host, and these names of it lead there. */
  async expectReadyOn(host: Host, roles: readonly ('origin' | 'preview')[]): Promise<void> {
    const shown = await this.shown(host);
    expect([shown?.ready, shown?.reason]).toEqual([true, 'Ready']);
    const records = await this.records();
    for (const role of roles) expect(this.hostIn(records, role)).toBe(host);
  }

  async records(): Promise<readonly DnsRecord[]> {
    const { json } = await this.emulator.call('GET', `/zones/${this.emulator.zone.id}/dns_records`);
    return json.result;
  }

  /** Where a name of the site leads; `undefined`: to neither host. */
  hostIn(records: readonly DnsRecord[], role: 'origin' | 'preview'): Host | undefined {
    const address = records.find(({ name }) => name === this.manifest.hostnames[role])?.content;
    return HOSTS.find((host) => ADDRESSES[host] === address);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const provisioner of this.#provisioners.values()) await provisioner[Symbol.asyncDispose]();
    await this.emulator.close();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function configOf({ container }: ManifestInput, ageIdentity: string): Promise<string> {
  return await encryptFor(await identityToRecipient(ageIdentity), container, containerConfig());
}
