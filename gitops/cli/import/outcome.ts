import { hash } from 'node:crypto';
import { canonicalJson } from '../../../base/canonical-json.ts';
import type { TagyardClient } from '../../../base/client/client.ts';
import { ApiProblem } from '../../../base/client/problem.ts';
import type { ClientItem, ContainerItem } from './file.ts';
import type { KnownClients } from './known-clients.ts';

/** What is done, or would be done, with one item of the file. */
export interface ItemOutcome {
  readonly kind: 'client' | 'container';
  readonly name: string;
  /**
   * `create`: an import would create it. `exists`: there is nothing to do. `skipped`: its client could not be created.
   */
  readonly outcome: 'create' | 'created' | 'exists' | 'failed' | 'skipped';
  readonly id: string | null;
  readonly detail: string;
}

interface Importer {
  readonly api: TagyardClient;
  readonly known: KnownClients;
  /** Whether anything may be changed. */
  readonly isReal: boolean;
  /** Makes the caller a member of a client, where that is allowed; `null`: the caller must already be a member. */
  readonly join: ((clientId: string) => Promise<void>) | null;
}

/** Imports one client with its containers, one after another. Reports each item as soon as it is known. */
export async function importClient(
  { id: given, containers, ...client }: ClientItem,
  importer: Importer,
  report: (outcome: ItemOutcome) => void,
): Promise<void> {
  const made = await importOwn(given, client, importer);
  report(made);
  const label = (item: ContainerItem) => ({ kind: 'container' as const, name: String(item.name) });
  const { id } = made;
  if (id !== null && importer.isReal && containers.length > 0) await importer.join?.(id);
  for (const item of containers) {
    if (made.outcome === 'failed') {
      report({ ...label(item), outcome: 'skipped', id: null, detail: '' });
      continue;
    }
    try {
      const existing = id === null ? null : await findExisting(importer, id, item);
      if (existing !== null) {
        report({ ...label(item), outcome: 'exists', id: existing, detail: '' });
      } else if (!importer.isReal || id === null) {
        report({ ...label(item), outcome: 'create', id: null, detail: domainsOf(item).join(', ') });
      } else {
        report({ ...label(item), ...(await createContainer(importer.api, { ...item, clientId: id })) });
      }
    } catch (error) {
      report({ ...label(item), ...failure(error) });
    }
  }
}

async function importOwn(
  given: string | undefined,
  client: Record<string, unknown>,
  { api, known, isReal }: Importer,
): Promise<ItemOutcome> {
  const name = given ?? String(client.name);
  const label = { kind: 'client' as const, name };
  const id = given ?? known.idOf(name);
  if (id !== null) return { ...label, outcome: 'exists', id, detail: '' };
  if (!isReal) return { ...label, outcome: 'create', id: null, detail: '' };
  try {
    const { data } = await api.post('/clients', { body: client as { name: string } }); // judged by the API's schema
    await known.add(name, data.id);
    return { ...label, outcome: 'created', id: data.id, detail: '' };
  } catch (error) {
    return { ...label, ...failure(error) };
  }
}

/** The client's container with the item's first domain. */
async function findExisting(
  { api, isReal, join }: Importer,
  clientId: string,
  item: ContainerItem,
): Promise<string | null> {
  const [domain = ''] = domainsOf(item);
  try {
    const { data } = await api.get('/server-containers', { params: { query: { clientId, domain } } });
    return data.containers.find(({ status }) => status !== 'removed' && status !== 'failed')?.id ?? null;
  } catch (error) {
    // A dry run doesn't make the caller a member.
    if (error instanceof ApiProblem && error.code === 'unknown_client' && !isReal && join !== null)
      return null;
    throw error;
  }
}

/** The same item has the same key, so that a repeated import gets the first answer, unless that creation has failed. */
async function createContainer(api: TagyardClient, body: ContainerItem & { readonly clientId: string }) {
  const failed: string[] = [];
  const query = { clientId: body.clientId, status: ['failed' as const] };
  for await (const { id, domains } of api.list('/server-containers', { params: { query } })) {
    const names = domains.map((one) => (typeof one === 'string' ? one : one.domain));
    if (names.some((name) => domainsOf(body).includes(name))) failed.push(id);
  }
  const key = `import-${hash('sha256', canonicalJson({ body, failed: failed.sort() }))}`;
  const header = { 'idempotency-key': key };
  const { data } = await api.post('/server-containers', { params: { header }, body: body as never }); // judged by the API's schema
  return { outcome: 'created' as const, id: data.id, detail: data.hostnames.edge };
}

function failure(error: unknown): Pick<ItemOutcome, 'outcome' | 'id' | 'detail'> {
  if (!(error instanceof ApiProblem)) throw error;
  return { outcome: 'failed', id: null, detail: error.message };
}

function domainsOf({ domains }: ContainerItem): string[] {
  return Array.isArray(domains) ? domains.map(String) : [];
}
