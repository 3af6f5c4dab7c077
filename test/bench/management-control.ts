import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { newToken } from '../../management/containers/draft.ts';
import { leasePorts } from '../../management/ports/ports.repository.ts';
import { recordSite } from '../../management/records/sites.repository.ts';
import { formatManifest } from '../../sites/manifest/load.ts';
import { type Manifest, manifestSchema } from '../../sites/manifest/schema.ts';
import { initSitesRepo } from '../../sites/repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../sites/repo/sites-repo.ts';
import type { World } from '../support/management/world.ts';

/** A repository beside the one that management follows. */
export async function controlRepo({ dir }: World): Promise<SitesRepo> {
  const url = join(dir, 'control.git');
  await initSitesRepo(url);
  return await openSitesRepo({ url, cacheDir: dir });
}

/** The least that a creation must do: insert its rows in one transaction, and commit its file. */
export async function byHand(
  { owner }: World,
  repo: SitesRepo,
  client: string,
  index: number,
): Promise<void> {
  const id = randomUUID();
  const site = `control-${index}`;
  const domain = `${site}.example`;
  const manifest = controlManifest(client, id, site, domain);
  const { containerConfig: _, ...view } = manifest;
  await owner.transaction().execute(async (trx) => {
    await trx
      .insertInto('audit_log')
      .values({ actor: 'owner', action: 'createContainer', request_id: site, container_id: id, status: 202 })
      .execute();
    await trx
      .insertInto('containers')
      .values({
        id,
        site_id: site,
        client_id: client,
        status: 'provisioning',
        manifest: JSON.stringify(view),
      })
      .execute();
    await trx
      .insertInto('container_events')
      .values({ container_id: id, kind: 'status', status: 'provisioning' })
      .execute();
    await trx.insertInto('domain_claims').values({ domain, container_id: id }).execute();
    await leasePorts(trx, 'tag-1', id);
    await trx
      .insertInto('operations')
      .values({
        id: randomUUID(),
        container_id: id,
        kind: 'provision',
        status: 'succeeded',
        step: 'follow',
        actor: '{}',
        request_id: site,
      })
      .execute();
    await recordSite(trx, view, { revision: null, blob: null });
  });
  await repo.commit({
    site,
    subject: `Create ${site}`,
    author: { name: 'Bench', email: 'bench@example.net' },
    trailers: { Site: site, Actor: 'owner', 'Request-Id': site, Reason: 'measured' },
    edit: () => formatManifest(manifest),
  });
}

function controlManifest(client: string, container: string, site: string, domain: string): Manifest {
  return manifestSchema.parse({
    version: 1,
    site,
    client,
    container,
    name: domain,
    host: 'tag-1',
    hostnames: { edge: `${site}.a.test`, origin: `${site}-origin.b.test`, preview: `${site}-preview.b.test` },
    ports: { processing: 50_000, preview: 50_001 },
    loaderToken: newToken('lt', randomBytes),
    domains: [{ domain, webTagId: 'GTM-ABC1234', token: newToken('ct', randomBytes) }],
    image: `sha256:${'a'.repeat(64)}`,
    containerConfig: '-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n-----END AGE ENCRYPTED FILE-----\n',
  });
}
