import { join } from 'node:path';
import { backoffMs } from '../base/backoff.ts';
import { systemClock } from '../base/clock.ts';
import { listenAt } from '../base/held-port.ts';
import { warner } from '../base/log.ts';
import { VerificationClient } from '../edge/verification/client.ts';
import { testRecipient } from '../sites/manifest/secrets.ts';
import { openSitesRepo, sitesRepoOf } from '../sites/repo/sites-repo.ts';
import { buildManagement, type Management } from './app.ts';
import type { MailSettings } from './clients/mail-client.ts';
import { ProvisionerClient } from './clients/provisioner-client.ts';
import { Resolvers } from './clients/resolvers.ts';
import type { LoginSettings } from './context/context.ts';
import { connectEmbedded, connectPostgres } from './db/connect.ts';
import type { ConnectedDatabase } from './db/connected.ts';
import { copyLines } from './db/copy-lines.ts';
import type { Database } from './db/database.ts';
import { DatabaseUnavailableError } from './db/unavailable.ts';
import { type Environment, readEnvironment } from './env.ts';
import { createAuthenticator } from './http/auth.ts';
import { checkEnvironment, watchSettings } from './preflight.ts';
import { prepare } from './prepare.ts';
import { openRawObjects } from './raw-objects/open.ts';
import { MOST_MEMBERS } from './tenants/tenant-file.ts';

/** A stop waits this long for running requests and steps. */
const STOP_MS = 10_000;
/** The pauses between attempts to reach the database at the start. */
const DATABASE_RETRIES = { firstMs: 500, longestMs: 10_000 };
/** The most event streams, and the most exports of requests, that one subject may have open in one process. */
const STREAMS_PER_SUBJECT = 100;

async function connect(env: Environment): Promise<ConnectedDatabase> {
  const { DATABASE_URL: url, PORT_POOL_DATABASE_URL: privileged } = env;
  const onIdleError = (error: Error) => process.stderr.write(`management: database: ${error.message}\n`);
  const db =
    url === undefined ? connectEmbedded(join(env.STATE_DIR, 'pglite')) : connectPostgres(url, onIdleError);
  const owner = url === undefined || privileged === undefined ? db : connectPostgres(privileged, onIdleError);
  await whenAvailable(() => prepare(db, owner, { host: env.HOST_NAME, ports: env.PORT_POOL }));
  if (owner !== db) await owner.destroy();
  return db;
}

/**
 * Repeats the work while the database can't be reached, so that this process may start before it. Throws what only a
 * person can change, such as a wrong password.
 */
async function whenAvailable(work: () => Promise<void>): Promise<void> {
  const warn = warner((reason) => process.stderr.write(`management: waits for the database: ${reason}\n`));
  for (let failures = 1; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      const reason = causeOf(error);
      if (!(reason instanceof DatabaseUnavailableError) || reason.isFinal) throw error;
      warn(reason);
      await systemClock.sleep(backoffMs(failures, Math.random, DATABASE_RETRIES));
    }
  }
}

/** The first of an error's causes. */
function causeOf(error: unknown): unknown {
  return error instanceof Error && !(error instanceof DatabaseUnavailableError) && error.cause !== undefined
    ? causeOf(error.cause)
    : error;
}

function verifierOf({ VERIFICATION_WORKER_URL: url, VERIFICATION_SECRET: secret }: Environment) {
  return url === undefined || secret === undefined ? null : new VerificationClient({ url, secret });
}

/** True if a revision was projected: then a missing branch was deleted. False: the repository may be new. */
async function hasSites(db: Database): Promise<boolean> {
  const query = db.selectFrom('sites').select('site_id').where('revision', 'is not', null).limit(1);
  return (await query.executeTakeFirst()) !== undefined;
}

function loginOf(env: Environment): LoginSettings | null {
  const { OIDC_CLIENT_ID: clientId, PUBLIC_URL: publicUrl } = env;
  if (clientId === undefined || publicUrl === undefined) return null;
  return {
    issuer: env.AUTH_ISSUER,
    clientId,
    subjectClaim: env.AUTH_SUBJECT_CLAIM,
    clientSecret: env.OIDC_CLIENT_SECRET ?? null,
    publicUrl,
    hints: env.OIDC_LOGIN_HINTS,
    idleSeconds: env.SESSION_IDLE_MINUTES * 60,
    absoluteSeconds: env.SESSION_HOURS * 3_600,
  };
}

function mailOf({ SMTP_URL: url, MAIL_FROM: from }: Environment): MailSettings | null {
  return url === undefined || from === undefined ? null : { url, from };
}

async function build(
  env: Environment,
  db: ConnectedDatabase,
  findings: () => readonly string[],
): Promise<Management> {
  return await buildManagement({
    db,
    findings,
    repo: await openSitesRepo({
      ...sitesRepoOf(env),
      pollSeconds: env.SITES_POLL_SECONDS,
      initialized: await hasSites(db),
      onNotice: (message) => process.stderr.write(`management: ${message}\n`),
    }),
    provisioner: new ProvisionerClient({ url: env.INFRA_PROVISIONER_URL, secret: env.INFRA_SECRET }),
    resolvers: new Resolvers(env.PROOF_RESOLVERS),
    verifier: verifierOf(env),
    rawObjects: openRawObjects(env),
    authenticate: createAuthenticator({
      jwksUrl: env.AUTH_JWKS_URL,
      issuer: env.AUTH_ISSUER,
      audience: env.AUTH_AUDIENCE,
      subjectClaim: env.AUTH_SUBJECT_CLAIM,
      jwks: { onNotice: (message) => process.stderr.write(`management: ${message}\n`) },
    }),
    settings: {
      host: env.HOST_NAME,
      image: env.TAG_SERVER_IMAGE,
      imageRepositories: env.IMAGE_REPOSITORIES,
      edgeDomain: env.EDGE_DOMAIN,
      originDomain: env.ORIGIN_DOMAIN,
      defaultConsent: env.DEFAULT_CONSENT,
      defaultTls: env.DEFAULT_TLS ?? null,
      platformDomains: env.PLATFORM_DOMAINS,
      edgePublicUrl: env.EDGE_PUBLIC_URL,
      customPublicUrl: env.CUSTOM_PUBLIC_URL,
      vendorUrl: env.TAG_UPSTREAM,
      ageRecipient: env.AGE_RECIPIENT,
      forwarderKey: env.FORWARDER_KEY ?? null,
      superAdmins: env.SUPER_ADMINS,
      domainProof: env.DOMAIN_PROOF,
      followMs: 500,
      watchMs: 5_000,
      answerMs: 25_000,
      limits: {
        perAddress: env.RATE_LIMIT_PER_ADDRESS,
        perSubject: env.RATE_LIMIT_PER_SUBJECT,
        streamsPerSubject: STREAMS_PER_SUBJECT,
      },
      quotas: {
        containers: env.CONTAINERS_PER_CLIENT === 0 ? null : env.CONTAINERS_PER_CLIENT,
        members: MOST_MEMBERS,
        tokens: env.TOKENS_PER_CLIENT,
        clientsPerOrganisation: env.CLIENTS_PER_ORGANISATION,
        clientsPerPerson: env.CLIENTS_PER_PERSON,
      },
      allowLoopback: env.ALLOW_LOOPBACK_TARGETS,
      trustedProxies: env.MANAGEMENT_TRUSTED_PROXIES,
      ingestSecret: env.INGEST_SECRET ?? null,
      searchCache: { dir: env.SEARCH_CACHE_DIR, days: env.SEARCH_CACHE_DAYS },
      metricsToken: env.METRICS_TOKEN ?? null,
      login: loginOf(env),
      publicUrl: env.PUBLIC_URL ?? null,
      mail: mailOf(env),
      dashboardOrigins: env.DASHBOARD_ORIGINS,
      traffic: {
        pollMs: env.RAW_LOGS_POLL_SECONDS * 1_000,
        lateDays: env.RAW_LOGS_LATE_DAYS,
        minuteHours: env.KEEP_TRAFFIC_MINUTES_HOURS,
        hourDays: env.KEEP_TRAFFIC_HOURS_DAYS,
        dayDays: env.KEEP_TRAFFIC_DAYS_DAYS,
        softLimits: {
          requests: env.USAGE_REQUESTS_PER_DAY === 0 ? null : env.USAGE_REQUESTS_PER_DAY,
          events: env.USAGE_EVENTS_PER_DAY === 0 ? null : env.USAGE_EVENTS_PER_DAY,
        },
      },
      retentionDays: {
        audit: env.KEEP_AUDIT_DAYS,
        events: env.KEEP_EVENTS_DAYS,
        operations: env.KEEP_OPERATIONS_DAYS,
      },
    },
    logger: { level: env.LOG_LEVEL },
  });
}

async function main(): Promise<void> {
  const env = readEnvironment(process.env);
  await testRecipient(env.AGE_RECIPIENT).catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`AGE_RECIPIENT: ${reason}`);
  });
  // What waits for the database has begun nothing. The handlers are there already, because the first process of a
  // container gets no signal without one.
  let stop = async (): Promise<void> => process.exit(0);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop().catch(fail));
  process.on('disconnect', () => stop().catch(fail));
  const db = await connect(env);
  const settings = watchSettings(env);
  const { app, follow } = await build(env, db, settings.findings);
  const stopping = new AbortController();
  const at = { host: env.MANAGEMENT_ADDRESS, port: env.MANAGEMENT_PORT };
  const url = await listenAt(app, at, 'MANAGEMENT_PORT');
  const following = follow(stopping.signal);
  settings.start(app.log);

  stop = async () => {
    if (stopping.signal.aborted) return;
    stopping.abort();
    settings.stop();
    setTimeout(() => process.exit(1), STOP_MS).unref();
    await app.close();
    await following;
    await db.destroy();
    if (process.connected) process.disconnect();
  };
  following.catch(fail);
  process.send?.({ type: 'ready', url });
}

/** Prints one line and exits. */
function fail(error: unknown): void {
  const reason = error instanceof Error ? error.message : String(error);
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : '';
  process.stderr.write(`management: ${reason}${cause}\n`);
  process.exit(1);
}

/** `tagyard check` starts this with the argument `check`, and gets the answer as a message. */
async function check(): Promise<void> {
  const checks = await checkEnvironment(process.env);
  process.send?.({ checks }, undefined, undefined, () => process.exit(0));
}

/** `tagyard backup` and `tagyard restore` start this with the argument `copy`. */
async function copy(): Promise<void> {
  await copyLines();
  process.exit(0);
}

const [, , verb] = process.argv;
(verb === 'check' ? check() : verb === 'copy' ? copy() : main()).catch(fail);
