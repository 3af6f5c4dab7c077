import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { withoutSecrets } from '../../management/db/manifest-view.ts';
import { holdPorts } from '../../management/ports/ports.repository.ts';
import { recordSite } from '../../management/records/sites.repository.ts';
import { formatTenant } from '../../management/tenants/tenant-file.ts';
import { formatManifest } from '../../sites/manifest/load.ts';
import { readManifest } from '../../sites/manifest/read.ts';
import { type Manifest, manifestSchema } from '../../sites/manifest/schema.ts';
import { initSitesRepo } from '../../sites/repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../sites/repo/sites-repo.ts';
import { eventually } from '../support/eventually.ts';
import { World } from '../support/management/world.ts';
import { manifestInput } from '../support/manifest.ts';
import type { Bench, Suite } from './bench.ts';

const SITES = 1_000;
const CLIENTS = 20;
const PORTS = { first: 20_000, last: 20_000 + 2 * SITES + 99 };

/** A database that is made anew from the sites repository alone. */
export const managementRestore: Suite = async (bench) => {
  const dir = mkdtempSync(join(tmpdir(), 'tagyard-restore-'));
  try {
    const bare = join(dir, 'sites.git');
    await initSitesRepo(bare);
    const repo = await openSitesRepo({ url: bare, cacheDir: dir });
    const manifests = Array.from({ length: SITES }, (_, index) => manifestOf(index));
    await write(repo, manifests);
    await restore(bench, bare, manifests);
    await control(bench, bare);
  } finally {
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
};

const clientId = (index: number) => `7c9e6679-7425-40de-944b-${String(index).padStart(12, '0')}`;

function manifestOf(index: number): Manifest {
  const name = `site-${index}`;
  return manifestSchema.parse(
    manifestInput(name, index, {
      client: clientId(index % CLIENTS),
      name: `Site ${index}`,
      customDomains: [`data.${name}.example`],
    }),
  );
}

async function write(repo: SitesRepo, manifests: readonly Manifest[]): Promise<void> {
  const files = [
    ...Array.from({ length: CLIENTS }, (_, index) => {
      const id = clientId(index);
      const members = [
        { subject: 'boss', role: 'viewer' as const },
        { subject: `owner-${index}`, role: 'owner' as const },
      ];
      const tenant = { name: `Client ${index}`, organisation: null, archivedAt: null, members };
      return { site: `clients/${id}`, text: formatTenant({ kind: 'clients', id }, tenant) };
    }),
    ...manifests.map((manifest) => ({ site: manifest.site, text: formatManifest(manifest) })),
  ];
  const author = { name: 'Bench', email: 'bench@example.net' };
  await Promise.all(
    files.map(({ site, text }) =>
      repo.commit({ site, subject: `Write ${site}`, author, trailers: {}, edit: () => text }),
    ),
  );
}

/** Throws unless all tokens, ports and names are those of git. `boss` reads them: members must be restored, too. */
async function restore(bench: Bench, bare: string, manifests: readonly Manifest[]): Promise<void> {
  let world: World | undefined;
  await bench(`restore of ${SITES} sites from git alone`, {
    unit: 's',
    run: async () => {
      const start = performance.now();
      world = await World.open({ bare, ports: PORTS, logLevel: 'silent' });
      // Nothing was lost on the host.
      for (const { site } of manifests) {
        world.provisioner.sites.set(site, { reason: 'Ready', message: '', health: 'healthy' });
      }
      const active = world.owner
        .selectFrom('containers')
        .select(({ fn }) => fn.countAll<string>().as('count'))
        .where('status', '=', 'active');
      await eventually(
        async () => {
          const { count } = await active.executeTakeFirstOrThrow();
          if (Number(count) < SITES) throw new Error(`${count} of ${SITES} are active`);
        },
        { timeoutMs: 1_800_000 },
      );
      return (performance.now() - start) / 1_000;
    },
  });
  if (world === undefined) return;
  const wrong = await differences(world, manifests);
  await bench('  sites whose tokens, ports or names differ', { unit: '', run: () => wrong.length });
  await world.close();
  if (wrong.length > 0) throw new Error(`these sites differ from git: ${wrong.slice(0, 5).join(', ')}`);
}

/** The sites for which the API or the port pool differs from git. */
async function differences(world: World, manifests: readonly Manifest[]): Promise<string[]> {
  const shown = new Map<string, object>();
  for (let next: string | null = ''; next !== null; ) {
    const cursor = next === '' ? '' : `&cursor=${next}`;
    const { body } = await world.call('GET', `/server-containers?limit=100${cursor}`, { as: 'boss' });
    for (const one of body.containers) shown.set(one.siteId, factsOf(one));
    next = body.next;
  }
  const leases = await world.owner
    .selectFrom('port_pool')
    .select(['processing', 'preview', 'leased_by'])
    .where('leased_by', 'is not', null)
    .execute();
  const ports = new Map(
    leases.map(({ processing, preview, leased_by }) => [leased_by, { processing, preview }]),
  );
  return manifests
    .filter(
      ({ site, container, client, name, loaderToken, domains, customDomains, hostnames, ports: own }) => {
        const wanted = { id: container, clientId: client, name, loaderToken, customDomains, hostnames };
        const pages = domains.map(({ domain, token, webTagId }) => ({
          domain,
          containerToken: token,
          webTagId,
        }));
        const isShown = isDeepStrictEqual(shown.get(site), { ...wanted, pages });
        return !isShown || !isDeepStrictEqual(ports.get(container), own);
      },
    )
    .map(({ site }) => site);
}

interface Shown {
  readonly id: string;
  readonly clientId: string;
  readonly name: string;
  readonly loaderToken: string;
  readonly customDomains: readonly string[];
  readonly hostnames: object;
  readonly domains: readonly { domain: string; containerToken: string; webTagId: string }[];
}

function factsOf({ id, clientId: client, name, loaderToken, customDomains, hostnames, domains }: Shown) {
  const pages = domains.map(({ domain, containerToken, webTagId }) => ({ domain, containerToken, webTagId }));
  return { id, clientId: client, name, loaderToken, customDomains, hostnames, pages };
}

/** The least that a restoration must do: read and parse each file, and insert its rows in one transaction. */
async function control(bench: Bench, bare: string): Promise<void> {
  await bench('  control: read each file, insert its rows', {
    unit: 's',
    run: async () => {
      const start = performance.now();
      const world = await World.open({ ports: PORTS, logLevel: 'silent' });
      const repo = await openSitesRepo({ url: bare, cacheDir: world.dir });
      const head = (await repo.head()) ?? '';
      await world.owner
        .insertInto('clients')
        .values(Array.from({ length: CLIENTS }, (_, index) => ({ id: clientId(index), name: 'Client' })))
        .execute();
      for (let index = 0; index < SITES; index += 1) {
        const file = await repo.readSite(head, `site-${index}`);
        const parsed = file === null ? null : await readManifest(file.text, file.path);
        if (!parsed?.ok) throw new Error(`site-${index} can't be read`);
        await insert(world, parsed.manifest);
      }
      const seconds = (performance.now() - start) / 1_000;
      await world.close();
      return seconds;
    },
  });
}

async function insert({ owner }: World, manifest: Manifest): Promise<void> {
  const { container: id, site, client, host, ports, domains, customDomains } = manifest;
  await owner.transaction().execute(async (trx) => {
    const view = withoutSecrets(manifest);
    await trx
      .insertInto('containers')
      .values({ id, site_id: site, client_id: client, status: 'active', manifest: JSON.stringify(view) })
      .execute();
    const names = [...domains.map(({ domain }) => domain), ...customDomains];
    await trx
      .insertInto('domain_claims')
      .values(names.map((domain) => ({ domain, container_id: id })))
      .execute();
    await holdPorts(trx, host, id, ports);
    await recordSite(trx, view, { revision: null, blob: null });
    await trx
      .insertInto('container_events')
      .values({ container_id: id, kind: 'status', status: 'active' })
      .execute();
  });
}
