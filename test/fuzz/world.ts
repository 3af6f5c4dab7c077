import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { identityToRecipient } from 'age-encryption';
import { request } from 'undici';
import { z } from 'zod';
import { planReportSchema, shownSiteSchema } from '../../gitops/report/report.ts';
import { formatManifest, parseManifest } from '../../sites/manifest/load.ts';
import type { ManifestInput } from '../../sites/manifest/schema.ts';
import { decryptSecret, encryptFor, identitiesIn, unbound } from '../../sites/manifest/secrets.ts';
import { eventually } from '../support/eventually.ts';
import { type Instance, startInstance, temporaryHome } from '../support/instance.ts';
import { api } from '../support/management/api.ts';
import { signal } from '../support/signal.ts';
import { startControl } from './control.ts';
import { seedManifest } from './manifests.ts';
import { Repository } from './repository.ts';
import { SITES } from './steps.ts';

/** Containers as child processes; shorter caches and pauses, only where steps would wait for them. */
const SETTINGS = {
  TAGYARD_PROXY: 'embedded',
  TAGYARD_CONTAINERS: 'process',
  SWAP_STEADY_SECONDS: '0',
  SWAP_DRAIN_SECONDS: '1',
  CONFIG_TTL_SECONDS: '1',
  // A burst of requests passes it.
  TOKENS_PER_CLIENT: '5',
  // The checks read everything after each step, and their calls count against the emulator's limit, too. At the usual
  // CLOUDFLARE_RATE, the provisioner would make a step wait for seven seconds.
  CLOUDFLARE_EMULATOR_CALLS: '1000000',
  CLOUDFLARE_RATE: '1000',
};

const secretsSchema = z.object({
  instance: z.string(),
  cloudflareToken: z.string(),
  ports: z.record(z.string(), z.number()),
});
const childrenSchema = z.array(z.object({ pid: z.number(), script: z.string() }));
const sitesSchema = z.object({
  revision: z.nullable(z.string()),
  problem: z.nullable(z.string()),
  sites: z.array(shownSiteSchema),
});
type Statuses = z.infer<typeof sitesSchema>;

/** A processing container, as the machine shows it: no part of Tagyard is asked. */
interface Process {
  readonly site: string;
  readonly url: string;
}

/** A whole instance with the generator's sites, all of them ready, and direct access to everything behind it. */
export async function startWorld() {
  await using stack = new AsyncDisposableStack();
  const home = stack.use(temporaryHome());
  const control = stack.use(await startControl());
  const instance = stack.use(await startInstance(home.path, SETTINGS));
  const world = await settledWorld(home.path, instance);
  const owned = stack.move();
  return { ...world, control, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
export type World = Awaited<ReturnType<typeof startWorld>>;

async function settledWorld(home: string, { run }: Instance) {
  const call = api(run);
  const repository = new Repository(run.sitesRepo, home);
  const secrets = secretsSchema.parse(JSON.parse(readFileSync(join(home, 'instance.json'), 'utf8')));
  const manifests = await seed(repository, readFileSync(join(home, 'age.key'), 'utf8'));

  const cloudflare = async (
    method: 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body?: object,
  ) => {
    const answer = await request(`http://127.0.0.1:${secrets.ports.cloudflare}/client/v4${path}`, {
      method,
      headers: { authorization: `Bearer ${secrets.cloudflareToken}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const { result } = (await answer.body.json()) as { result: Record<string, unknown>[] }; // the emulator's envelope
    return result;
  };
  const [zone] = await cloudflare('GET', '/zones');
  const account = z.object({ id: z.string() }).parse(zone?.account).id;
  const namespaces = await cloudflare('GET', `/accounts/${account}/storage/kv/namespaces`);
  const paths = {
    records: `/zones/${zone?.id}/dns_records`,
    stores: namespaces.map(({ id }) => `/accounts/${account}/storage/kv/namespaces/${id}`),
  };

  const statuses = async (): Promise<Statuses> =>
    sitesSchema.parse((await call.provisioner('GET', '/sites')).body);

  const world = {
    home,
    run,
    call,
    repository,
    manifests,
    cloudflare,
    statuses,
    /** DNS records and KV keys with the site in their mark. */
    async marked(site: string) {
      const ours = (value: unknown) => JSON.stringify(value ?? '').includes(` ${site} `);
      const records = await cloudflare('GET', `${paths.records}?per_page=1000`);
      const keys = await Promise.all(
        paths.stores.map(async (store) =>
          (await cloudflare('GET', `${store}/keys`)).map(
            (key) => ({ ...key, url: `${store}/values/` }) as Record<string, unknown> & { url: string },
          ),
        ),
      );
      return {
        records: records
          .filter(({ comment }) => ours(comment))
          .map(
            (record) =>
              ({ ...record, url: `${paths.records}/${record.id}` }) as Record<string, unknown> & {
                url: string;
              },
          ),
        keys: keys
          .flat()
          .filter(({ metadata }) => ours(metadata))
          .map((key) => ({ ...key, url: `${key.url}${encodeURIComponent(String(key.name))}` })),
      };
    },
    /** The processing containers of all sites that run now. */
    processes: (): Process[] => processesOf(secrets.instance),
    plan: async () => planReportSchema.parse((await call.provisioner('POST', '/plan', {})).body),
    /** Ends a part with SIGKILL; the instance starts it again. */
    async kill(script: string): Promise<void> {
      const pid = () =>
        childrenSchema
          .parse(JSON.parse(readFileSync(join(home, 'children.json'), 'utf8')))
          .find((child) => child.script.endsWith(script))?.pid ?? 0;
      const before = pid();
      signal(before, 'SIGKILL', home);
      await eventually(
        async () => {
          if (pid() === before) throw new Error(`${script} was not started again`);
          if ((await call.provisioner('GET', '/readyz')).status === 401)
            throw new Error('another process answers');
        },
        { timeoutMs: 60_000 },
      );
    },
    /** The folder of the configuration that the proxy serves. */
    proxyFolder(): string {
      const prefix = join(home, 'provisioner', 'proxy');
      const name = ['current', 'sites'].find((folder) => existsSync(join(prefix, folder)));
      if (name === undefined) throw new Error(`the proxy keeps nothing in ${prefix}`);
      return join(prefix, name);
    },
  };
  await call.provisioner('POST', '/sync');
  await eventually(
    async () => {
      const { sites } = await statuses();
      for (const site of SITES) {
        const found = sites.find((one) => one.site === site);
        if (found?.ready !== true) throw new Error(`${site}: ${found?.reason} ${found?.message}`);
      }
    },
    { timeoutMs: 90_000 },
  );
  return world;
}

/** Commits the generator's sites in one commit, with the image and the CONTAINER_CONFIG of the demo site. */
async function seed(repository: Repository, keyFile: string): Promise<Map<string, ManifestInput>> {
  const head = await repository.head();
  // Folders hold the files of clients and organisations.
  const [file] = (await repository.tree(head)).filter(({ path }) => /^[^/]+\.yaml$/.test(path));
  const demo = parseManifest((await repository.text(file?.id ?? '')) ?? '', file?.path ?? '');
  if (!demo.ok) throw new Error('the demo site has no valid manifest');
  const recipient = await identityToRecipient(identitiesIn(keyFile)[0] ?? '');
  const { secret } = unbound(await decryptSecret(keyFile, demo.manifest.containerConfig));
  const manifests = new Map<string, ManifestInput>();
  for (const site of SITES) {
    const manifest = seedManifest(site, demo.manifest);
    const containerConfig = await encryptFor(recipient, manifest.container, secret.reveal());
    manifests.set(site, { ...manifest, containerConfig });
  }
  await repository.move(async (base) => {
    const edits = SITES.map((site) => ({
      op: 'put' as const,
      path: `${site}.yaml`,
      mode: '100644' as const,
      content: { of: 'manifest' as const, site, change: 'same' as const, other: site },
    }));
    const texts = new Map(
      [...manifests].map(([site, manifest]) => [`${site}.yaml`, formatManifest(manifest)]),
    );
    const tree = await repository.edited(base, edits, async (edit) =>
      Buffer.from(texts.get('path' in edit ? edit.path : '') ?? ''),
    );
    return await repository.commit(tree, [base], 'Add the sites');
  });
  return manifests;
}

function processesOf(instance: string): Process[] {
  return readdirSync('/proc').flatMap((pid): Process[] => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const title = readFileSync(`/proc/${pid}/cmdline`, 'latin1');
      const [, site] = new RegExp(`tagyard-${instance}-(.+)-processing-`).exec(title) ?? [];
      if (site === undefined) return [];
      const environment = new Map(
        readFileSync(`/proc/${pid}/environ`, 'latin1')
          .split('\0')
          .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
      );
      return [{ site, url: `http://${environment.get('HOST')}:${environment.get('PORT')}` }];
    } catch {
      return []; // it ended
    }
  });
}
