import '../base/runtime/disposable-stack.ts';
import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { holdPort } from '../base/held-port.ts';
import { acquireLock } from '../base/lock.ts';
import { testIdentities } from '../sites/manifest/secrets.ts';
import { holdBeforeStart } from '../sites/repo/host-lease.ts';
import { holderId } from '../sites/repo/lease/holder-id.ts';
import { openSitesRepo, sitesRepoOf } from '../sites/repo/sites-repo.ts';
import { DesiredStateReader } from './desired/reader.ts';
import { type Env, readEnv } from './env.ts';
import { buildHost, installationOf } from './host/host.ts';
import { edgeAnswers } from './host/shared.ts';
import { buildDaemon } from './http/app.ts';
import { acceptedSecrets } from './http/secrets.ts';
import { savedLoop } from './loop/loop.ts';
import { StateFile } from './loop/state.ts';
import { frozenBy } from './pass/freeze.ts';
import { logFindings } from './report/log-findings.ts';

/** Starts the provisioner daemon: environment → clients → application → loop. */
async function start(env: Env): Promise<{ url: string; checkAll(): void; stop(): Promise<void> }> {
  await using stack = new AsyncDisposableStack();
  await mkdir(env.STATE_DIR, { recursive: true, mode: 0o700 });
  const lock = acquireLock(join(env.STATE_DIR, 'lock'));
  stack.defer(() => lock.release());

  const log = pino({
    level: env.LOG_LEVEL,
    redact: ['req.headers["x-secret"]', 'req.headers.authorization'],
  });
  const ageIdentity = await readIdentity(env.AGE_IDENTITY_FILE);
  const file = new StateFile(join(env.STATE_DIR, 'state.json'), (err) =>
    log.warn({ err }, 'the state could not be written'),
  );
  const secrets = acceptedSecrets(env.INFRA_SECRET, env.INFRA_SECRET_PREVIOUS);
  const freePort = await holdPort(env.PROVISIONER_ADDRESS, env.PROVISIONER_PORT, 'PROVISIONER_PORT');
  const known = await file.read();
  const repo = await openSitesRepo({
    ...sitesRepoOf(env),
    pollSeconds: env.SITES_POLL_SECONDS,
    initialized: known !== null && known.revision !== null,
    onNotice: (message) => log.warn(message),
  });
  const lease = repo.hostLease({
    host: env.HOST_NAME,
    holder: await holderId(env.STATE_DIR),
    installation: await installationOf(env),
    takeoverTerm: env.HOST_TAKEOVER_TERM,
  });
  await holdBeforeStart(repo, lease);
  const built = await buildHost(env, stack, {
    log,
    ordinal: async () => (reader.revision === null ? null : await repo.ordinal(reader.revision)),
  });
  const { appliers, certificates } = built;

  const host = env.HOST_NAME;
  const reader = new DesiredStateReader(repo, {
    host,
    ageIdentity,
    zones: {
      edgeDomain: env.EDGE_DOMAIN,
      originDomain: env.ORIGIN_DOMAIN ?? env.EDGE_DOMAIN,
    },
    appliedRevision: (site) => loop.status(site)?.applied ?? null,
  });
  const { loop, operations } = savedLoop(file, known, {
    repo,
    lease,
    reader,
    appliers,
    host,
    drainSeconds: env.DRAIN_SECONDS,
    intervalSeconds: env.RECONCILE_INTERVAL_SECONDS,
    policy: env.RECONCILE_POLICY,
    drift: env.DRIFT_MODES,
    frozen: async () =>
      (await frozenBy(join(env.STATE_DIR, 'freeze'))) ??
      (env.FREEZE_FILE === undefined ? null : await frozenBy(env.FREEZE_FILE)),
    certificates,
    log,
  });
  const app = buildDaemon({
    repo,
    reader,
    loop,
    operations,
    host,
    ageIdentity,
    secrets,
    readToken: env.INFRA_READ_TOKEN,
    ...(env.SITES_WEBHOOK_SECRET_FILE === undefined
      ? {}
      : { pushWebhook: { secretFile: env.SITES_WEBHOOK_SECRET_FILE, branch: env.SITES_BRANCH } }),
    reportSite: built.reportSite,
    askEdge: edgeAnswers(env),
    checkParts: built.checkParts,
    trySettings: built.trySettings,
    certificatesOf: (site) => certificates.statuses(site),
    conditionsOf: (site) => built.conditionsOf?.(site) ?? [],
    profiles: built.profiles,
    ...(built.containerLogs === undefined ? {} : { containerLogs: built.containerLogs }),
    hasAuthority: env.ACME_DIRECTORY_URL !== undefined,
    quotas: () => appliers.flatMap((applier) => applier.quota?.() ?? []),
    logger: log,
  });
  stack.defer(() => file.flush());
  stack.defer(() => loop.stop());
  stack.defer(() => certificates.stop());
  stack.defer(() => app.close());
  const url = await app.listen({ host: env.PROVISIONER_ADDRESS, port: await freePort() });
  loop.start();
  certificates.start((site) => loop.checkSite(site));
  // Not awaited: sites are served, and the API answers, meanwhile. It never rejects.
  void Promise.all([built.trySettings([]), built.checkParts([])]).then((checks) =>
    logFindings(checks.flat(), log),
  );

  const running = stack.move();
  return { url, checkAll: () => loop.sync(), stop: () => running.disposeAsync() };
}

/**
 * Reads the age key file and tests its identities: with a bad file, every site would fail later. Throws an `Error` that
 * names the file.
 */
async function readIdentity(file: string): Promise<string> {
  try {
    const text = await readFile(file, 'utf8');
    await testIdentities(text);
    return text;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`AGE_IDENTITY_FILE ${file}: ${reason}`, { cause });
  }
}

// Installed before the start: a signal during it must still close what was opened by then.
const stopping = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stopping.abort());
let checkAll: () => void = () => undefined;
process.on('SIGHUP', () => checkAll());
// The parent that supervises this process is gone.
process.once('disconnect', () => stopping.abort());

try {
  const running = await start(readEnv(process.env));
  checkAll = running.checkAll;
  // To the parent that supervises this process, if there is one.
  if (process.connected) process.send?.({ type: 'ready', url: running.url });
  if (!stopping.signal.aborted) await once(stopping.signal, 'abort');
  await running.stop();
  process.exit(0);
} catch (error) {
  process.stderr.write(`provisioner: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
