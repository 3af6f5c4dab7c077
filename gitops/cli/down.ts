import '../../base/runtime/disposable-stack.ts';
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { limit } from '../../base/limit.ts';
import { acquireLock, LockHeldError } from '../../base/lock.ts';
import { counted } from '../../base/text.ts';
import { SitesRepoError } from '../../sites/repo/errors.ts';
import { LeaseHeldError } from '../../sites/repo/host-lease.ts';
import { holderId } from '../../sites/repo/lease/holder-id.ts';
import { openSitesRepo, type SitesRepo, sitesRepoOf } from '../../sites/repo/sites-repo.ts';
import type { Applier, Change } from '../appliers/contract.ts';
import { runningMaster, stopNginx } from '../appliers/proxy/nginx/process.ts';
import { DesiredStateReader } from '../desired/reader.ts';
import { type MachineEnv, readEnv } from '../env.ts';
import { buildHost } from '../host/host.ts';
import { executeSite } from '../loop/execute.ts';
import { confirmation } from './init/place.ts';
import { Home } from './instance/home.ts';
import type { CliContext } from './instance/provisioner-client.ts';
import { CliError } from './output/cli-error.ts';
import { header } from './output/print.ts';
import { table } from './output/table.ts';
import { Child } from './up/child.ts';
import { edgePart, provisionerPart } from './up/parts.ts';
import { PORTS } from './up/ports.ts';
import { openHome } from './up/up.ts';

export interface DownOptions {
  /** Doesn't ask. */
  readonly yes?: boolean;
}

const SITES_AT_ONCE = 16;
const never = new AbortController().signal;

/**
 * Removes every object that carries this host's mark: of the sites, those of the host, and its claim in the sites
 * repository. Lists them first, and asks. Throws `CliError` while the provisioner runs, and where a target can't be read:
 * then nothing is removed.
 */
export async function purge(context: CliContext, { yes = false }: DownOptions): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const env = await settingsOf(context, stack);
  const { repo, lease } = await holdHost(env, stack);
  const proxy = join(env.STATE_DIR, 'proxy');
  const wasServing = (await runningMaster(proxy)) !== null;
  let isPurged = false;
  // Opening the host starts the proxy, which outlives this process.
  stack.defer(async () => {
    if (isPurged || !wasServing) await stopNginx(proxy);
  });
  const log = pino({ level: 'silent' });
  const { appliers } = await buildHost(env, stack, { log, ordinal: async () => null });
  const changes = await deletesOf(appliers, await moved(env, repo));
  const rows = changes.map(({ target, site, key }) => [target, site, key]);
  process.stdout.write(table([header('target', 'site', 'object'), ...rows]));
  const what = `${counted(changes.length, 'object')} of the host ${env.HOST_NAME}`;
  if (!(await confirmation(yes)(`Remove ${what} for good, and its claim in the sites repository?`)))
    throw new CliError('nothing was removed; agree on a terminal, or add --yes');
  await remove(appliers, changes);
  await lease.release();
  isPurged = true;
  process.stdout.write(
    `${what} and its claim are removed; delete ${env.STATE_DIR} if you don't need its keys\n`,
  );
}

/** A host's settings if there are any, else those of the embedded instance, whose Cloudflare is started. */
async function settingsOf({ home: path, env }: CliContext, stack: AsyncDisposableStack): Promise<MachineEnv> {
  const home = new Home(path);
  const isEmbedded = !env.AGE_IDENTITY_FILE && existsSync(home.at('instance.json'));
  const settings = isEmbedded ? await embeddedSettings(home, env, stack) : env;
  const read = await refusing([Error], async () => readEnv(settings));
  if (read.HOST_KIND !== 'kubernetes') return read;
  throw new CliError('this host is a cluster: see docs/kubernetes.md, Removing');
}

async function embeddedSettings(home: Home, env: NodeJS.ProcessEnv, stack: AsyncDisposableStack) {
  const lock = home.lock();
  stack.defer(() => lock.release());
  // Nobody uses these ports, so any are good.
  const anyPorts = Object.values(PORTS).flatMap((port) => ('variable' in port ? [[port.variable, '0']] : []));
  const setup = await openHome(home, { ...env, ...Object.fromEntries(anyPorts) });
  const edge = new Child(edgePart(setup), () => undefined);
  stack.defer(() => edge.stop());
  const { accountId, zoneId } = await edge.start();
  return {
    ...env,
    ...provisionerPart(setup, { accountId: String(accountId), zoneId: String(zoneId) }).env,
  };
}

/** Throws `CliError` where a daemon acts as this host, here or on another machine. */
async function holdHost(env: MachineEnv, stack: AsyncDisposableStack) {
  return await refusing([LockHeldError, LeaseHeldError, SitesRepoError], async () => {
    await mkdir(env.STATE_DIR, { recursive: true, mode: 0o700 });
    const lock = acquireLock(join(env.STATE_DIR, 'lock'));
    stack.defer(() => lock.release());
    const repo = await openSitesRepo(sitesRepoOf(env));
    const holder = await holderId(env.STATE_DIR);
    const lease = repo.hostLease({ host: env.HOST_NAME, holder, takeoverTerm: env.HOST_TAKEOVER_TERM });
    await repo.head();
    await lease.hold();
    return { repo, lease };
  });
}

/** Makes errors of these kinds, which a person can remedy, errors of the command line. */
async function refusing<Result>(
  kinds: readonly (new (...args: never[]) => Error)[],
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof Error) || !kinds.some((kind) => cause instanceof kind)) throw cause;
    const hint = cause instanceof LockHeldError ? ': stop the provisioner first' : '';
    throw new CliError(`${cause.message}${hint}`, { cause });
  }
}

/** The sites that git has on other hosts: what is kept of their visitors must stay. */
async function moved(env: MachineEnv, repo: SitesRepo): Promise<ReadonlySet<string>> {
  const revision = await repo.head();
  if (revision === null) return new Set();
  const reader = new DesiredStateReader(repo, {
    host: env.HOST_NAME,
    ageIdentity: await readFile(env.AGE_IDENTITY_FILE, 'utf8'),
    zones: { edgeDomain: env.EDGE_DOMAIN, originDomain: env.ORIGIN_DOMAIN ?? env.EDGE_DOMAIN },
    appliedRevision: () => null,
  });
  const { onOtherHosts } = await reader.read(revision);
  return new Set([...onOtherHosts].flatMap(([site, { state }]) => (state === 'present' ? [site] : [])));
}

/** What no desired site asks for, as the appliers themselves plan it: all that is ours. */
async function deletesOf(appliers: readonly Applier[], stays: ReadonlySet<string>): Promise<Change[]> {
  const plans = appliers.map(async (applier) => {
    try {
      const ofSites = await applier.observe([], never);
      return applier.plan([], [...ofSites, ...((await applier.ofHost?.(never)) ?? [])]).changes;
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new CliError(`nothing was removed, because ${applier.target} can't be read: ${reason}`, {
        cause,
      });
    }
  });
  const changes = (await Promise.all(plans)).flat();
  return changes.map((change) => (stays.has(change.site) ? change : { ...change, ended: true }));
}

/** Throws `CliError` where an object could not be removed. A second purge removes the rest. */
async function remove(appliers: readonly Applier[], changes: readonly Change[]): Promise<void> {
  const deps = {
    appliers: new Map(appliers.map((applier) => [applier.target, applier])),
    drainSeconds: 0,
    onDnsRemoved: () => undefined,
    onStep: () => undefined,
  };
  const run = { unobserved: new Map(), removal: true, dnsRemovedAt: null, superseded: never };
  const some = limit(SITES_AT_ONCE);
  const sites = [...Map.groupBy(changes, ({ site }) => site).values()];
  const outcomes = await Promise.all(
    sites.map((own) => some(() => executeSite({ ...run, changes: own }, deps, never))),
  );
  const failures = outcomes.flatMap((outcome) => outcome.failures);
  if (failures.length === 0) return;
  const reasons = failures.map(({ change, error }) => `\n  ${change.target} ${change.key}: ${error.message}`);
  throw new CliError(`not everything could be removed; run it again:${reasons.join('')}`);
}
