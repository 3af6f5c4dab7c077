import { EventEmitter } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { RetryableError, TerminalError } from '../../../../base/errors.ts';
import { contentHash, type Identity, readMark } from '../../../../base/ownership.ts';
import {
  type ProxyBackend,
  type ProxyChange,
  type ProxyEndpoint,
  type ProxySettings,
  reachableAddress,
} from '../backend.ts';
import { proxySpecSchema, servedName } from '../desired.ts';
import { emissions } from '../emissions.ts';
import { stopNginx } from '../nginx/process.ts';
import { assignProxyPorts } from '../ports.ts';
import { type Listening, listenOn } from './listen.ts';
import { buildEmbeddedProxy } from './server.ts';
import { VhostStore } from './store.ts';
import { isCurrent, type LoadedVhosts, loadVhosts, VhostTable } from './table.ts';

interface Started {
  readonly endpoint: ProxyEndpoint;
  close(): Promise<void>;
}

/**
 * A proxy in this process, for a machine without nginx. The applied vhosts are kept in files under the prefix. A change
 * of configuration takes effect at once and keeps all connections, so nothing is reloaded.
 */
export function embeddedBackend(settings: ProxySettings): ProxyBackend {
  const { prefix } = settings;
  const store = new VhostStore(join(prefix, 'sites'));
  const table = new VhostTable();
  const events = new EventEmitter();
  let started: Started | null = null;

  return {
    async start() {
      // If the setting was nginx before, that nginx may still hold the ports.
      await stopNginx(prefix);
      await store.prepare();
      await restore(store, table, settings);
      started = await serve(table, settings);
      return started.endpoint;
    },
    endpoint() {
      if (started === null) throw new RetryableError('the proxy isn’t started yet');
      return started.endpoint;
    },
    async installed() {
      const found = (await store.all()).map(async ({ key, mark, spec, path }) => {
        const served = table.get(key);
        const intact =
          served !== undefined && spec !== null && (await isCurrent(served, spec, settings.certificates));
        // This process could not serve at its start what an earlier one applied, or a certificate was renewed.
        const outdated =
          !intact && spec !== null && (served === undefined || served.specHash === contentHash(spec));
        return { key, mark, path, intact, outdated, names: spec?.vhosts.map(servedName) ?? null };
      });
      return await Promise.all(found);
    },
    async install(changes) {
      const outcomes: PromiseSettledResult<{ changed: boolean }>[] = [];
      // One after another: if two changes of a batch have the same name, the first one gets it.
      for (const change of changes) {
        outcomes.push(...(await Promise.allSettled([installOne(change, store, table, settings)])));
      }
      return outcomes;
    },
    // Yields nothing, because the proxy is never lost while this process runs.
    events: (signal) => emissions(events, 'lost', signal),
    async close() {
      await started?.close();
    },
  };
}

/** Serves what an earlier process applied. What can't be served is observed as outdated; its site is applied again. */
async function restore(store: VhostStore, table: VhostTable, { identity, certificates }: ProxySettings) {
  for (const { key, mark, spec } of await store.all()) {
    if (spec === null || !isOurs(identity, mark)) continue;
    const loaded = await loadVhosts(spec, certificates).catch(() => null);
    if (loaded !== null) table.put(key, loaded);
  }
}

async function installOne(
  { key, mark, adopt, spec }: ProxyChange,
  store: VhostStore,
  table: VhostTable,
  { identity, certificates }: ProxySettings,
): Promise<{ changed: boolean }> {
  const existing = await store.find(key);
  const foreign = existing !== undefined && !isOurs(identity, existing.mark);
  if (spec === null) {
    if (existing === undefined || foreign) return { changed: false };
    table.remove(key);
    await store.remove(key);
    return { changed: true };
  }
  if (foreign && !adopt) throw new RetryableError(`${key} was taken by another owner since it was observed`);
  const parsed = proxySpecSchema.safeParse(spec);
  if (!parsed.success) throw new TerminalError(`${key} can’t be served`, { cause: parsed.error });
  const loaded = await loadVhosts(parsed.data, certificates);
  refuseClaimed(key, loaded, table);
  const served = table.get(key);
  const stored = existing?.mark === mark && existing.spec !== null;
  if (stored && served !== undefined && isDeepStrictEqual(fingerprintOf(served), fingerprintOf(loaded))) {
    return { changed: false };
  }
  await store.write(key, mark, parsed.data);
  table.put(key, loaded);
  return { changed: true };
}

/** Equal for two loads with equal specs and certificates. */
function fingerprintOf({ specHash, certificates }: LoadedVhosts) {
  return { specHash, certificates };
}

function refuseClaimed(key: string, { vhosts }: LoadedVhosts, table: VhostTable): void {
  for (const { vhost } of vhosts) {
    const holder = table.holderOf(vhost.host);
    if (holder !== undefined && holder !== key) {
      throw new RetryableError(`conflicting server name "${vhost.host}": ${holder} has it`);
    }
  }
}

async function serve(table: VhostTable, settings: ProxySettings): Promise<Started> {
  const { prefix, listen, httpPort, tlsPort, ca, ...shared } = settings;
  const ports = await assignProxyPorts(join(prefix, 'ports.json'), listen, { httpPort, tlsPort });
  const proxy = buildEmbeddedProxy({
    ...shared,
    find: (host) => table.find(host),
    ...(ca === undefined ? {} : { ca: await readFile(ca, 'utf8') }),
  });
  const servers: Listening[] = [];
  const close = async () => {
    await Promise.all(servers.map((server) => server.close()));
    proxy.close();
  };
  try {
    for (const address of listen) {
      servers.push(await listenOn(proxy.http(), address, ports.httpPort));
      servers.push(await listenOn(proxy.https(), address, ports.tlsPort));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { endpoint: { ...ports, address: reachableAddress(listen) }, close };
}

function isOurs(identity: Identity, mark: string | undefined): boolean {
  return readMark(identity, mark).owner.kind === 'ours';
}
