import { sql } from 'kysely';
import type { Log } from '../base/log.ts';
import {
  checkPart,
  NotChecked,
  PART_TIMEOUT_MS,
  skippedPart,
  textOfError,
} from '../gitops/report/check-part.ts';
import { checkClock, checkPorts, checkRights } from '../gitops/report/common-checks.ts';
import { logFindings } from '../gitops/report/log-findings.ts';
import type { PartCheck } from '../gitops/report/report.ts';
import { RUNBOOKS } from '../gitops/report/runbooks.ts';
import { sitesRepoOf } from '../sites/repo/sites-repo.ts';
import { connectPostgres } from './db/connect.ts';
import type { ConnectedDatabase } from './db/connected.ts';
import { type Environment, readEnvironment } from './env.ts';

/** The checks of management's settings, likewise made before and at each start. None throws. */
async function managementPreflight(env: Environment): Promise<PartCheck[]> {
  return await Promise.all([
    checkDatabase(env),
    checkRights(sitesRepoOf(env)),
    checkProvisioner(env),
    checkClock(new URL('/healthz', env.INFRA_PROVISIONER_URL).href),
    checkVerification(env),
  ]);
}

const PAUSES = {
  /** A provisioner that was started with management answers by then. */
  firstMs: 10_000,
  wellMs: 300_000,
  /** With the checks themselves, a corrected setting is a finding for less than 30 s. */
  failedMs: 20_000,
};

/**
 * Checks the settings while management runs. The log has the first outcome, and each with other failures than the one
 * before; `findings`: the names of the last failures.
 */
export function watchSettings(env: Environment, { firstMs, wellMs, failedMs }: typeof PAUSES = PAUSES) {
  let failed: readonly string[] | null = null;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  const check = async (log: Log) => {
    const checks = await managementPreflight(env);
    const names = checks.flatMap(({ name, status }) => (status === 'failed' ? [name] : []));
    if (names.join() !== failed?.join()) logFindings(checks, log);
    failed = names;
    if (!isStopped) again(log, names.length === 0 ? wellMs : failedMs);
  };
  const again = (log: Log, pauseMs: number) => {
    timer = setTimeout(() => void check(log), pauseMs).unref();
  };
  return {
    findings: () => failed ?? [],
    start: (log: Log) => again(log, firstMs),
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

/** `tagyard check`: the same of an environment, and whether it can be used at all. */
export async function checkEnvironment(variables: NodeJS.ProcessEnv): Promise<PartCheck[]> {
  let env: Environment;
  try {
    env = readEnvironment(variables);
  } catch (error) {
    return [
      { name: 'settings', status: 'failed', detail: textOfError(error), fix: RUNBOOKS.settings.fixes.wrong },
    ];
  }
  const { MANAGEMENT_ADDRESS: host, MANAGEMENT_PORT: port } = env;
  const isOurs = port !== 0 && (await identityAt(`http://${host}:${port}/readyz`)) === 'management';
  const [ports, rest] = await Promise.all([
    checkPorts([{ setting: 'MANAGEMENT_PORT', host, port, isOurs }]),
    managementPreflight(env),
  ]);
  return [ports, ...rest];
}

/** Which service says that it answers at a URL; `null`: none does. No secret is sent. */
async function identityAt(url: string): Promise<string | null> {
  const answer = await ask(url, AbortSignal.timeout(PART_TIMEOUT_MS)).catch(() => null);
  return answer?.service ?? null;
}

interface ServiceAnswer {
  readonly status: number;
  readonly service: string | null;
  readonly code: string | null;
  readonly body: Readonly<Record<string, unknown>>;
}

async function ask(url: string, signal: AbortSignal, secret?: string): Promise<ServiceAnswer> {
  const headers = secret === undefined ? {} : { 'x-secret': secret };
  const response = await fetch(url, { headers, redirect: 'manual', signal });
  const json: unknown = await response.json().catch(() => null);
  const body: ServiceAnswer['body'] = typeof json === 'object' && json !== null ? { ...json } : {};
  const text = (value: unknown) => (typeof value === 'string' ? value : null);
  // The provisioner's problems name no service.
  const ofProvisioner = text(body.type)?.startsWith('urn:tagyard:problem:') ? 'provisioner' : null;
  const service = text(body.service) ?? ofProvisioner;
  return { status: response.status, service, code: text(body.code), body };
}

/**
 * Asks without the secret first, so that a stranger at the URL never gets it: the answer of another service is returned as
 * it is.
 */
async function introduced(
  url: URL,
  { service, secret }: { readonly service: 'provisioner' | 'verification'; readonly secret: string },
  signal: AbortSignal,
): Promise<ServiceAnswer> {
  const first = await ask(url.href, signal);
  const mayGetIt = first.service === service && first.code !== 'secret_not_configured';
  return mayGetIt ? await ask(url.href, signal, secret) : first;
}

async function checkProvisioner(env: Environment): Promise<PartCheck> {
  const { INFRA_PROVISIONER_URL: base, INFRA_SECRET: secret } = env;
  return await checkPart('provisioner', {
    fix: 'silent',
    subject: `INFRA_PROVISIONER_URL ${base}`,
    async ask(signal, fault) {
      const answer = await introduced(new URL('/readyz', base), { service: 'provisioner', secret }, signal);
      const { service, status, code, body } = answer;
      if (service !== 'provisioner') {
        throw fault(
          `INFRA_PROVISIONER_URL: another server than the provisioner answers, with status ${status}`,
          'stranger',
        );
      }
      if (code === 'secret_not_configured') {
        throw fault('INFRA_SECRET: the provisioner has none, so it refuses every request', 'unset');
      }
      if (code === 'wrong_secret') throw fault('INFRA_SECRET is not the provisioner’s', 'secret');
      const { host, recipients } = body;
      if (host === undefined) throw new NotChecked('the provisioner is older, and doesn’t name its host');
      if (host !== env.HOST_NAME) {
        throw fault(`HOST_NAME: the provisioner is ${String(host)}, not ${env.HOST_NAME}`, 'host');
      }
      if (Array.isArray(recipients) && !recipients.includes(env.AGE_RECIPIENT)) {
        throw fault(
          'AGE_RECIPIENT: the host has no identity that decrypts what is encrypted to it',
          'recipient',
        );
      }
      return `${env.HOST_NAME} answers at ${base}`;
    },
  });
}

async function checkVerification(env: Environment): Promise<PartCheck> {
  const { VERIFICATION_WORKER_URL: base, VERIFICATION_SECRET: secret } = env;
  if (base === undefined || secret === undefined) {
    return skippedPart('verification', 'VERIFICATION_WORKER_URL and VERIFICATION_SECRET are unset');
  }
  return await checkPart('verification', {
    fix: 'silent',
    subject: `VERIFICATION_WORKER_URL ${base}`,
    async ask(signal, fault) {
      const answer = await introduced(new URL('/verify', base), { service: 'verification', secret }, signal);
      const { service, status, code } = answer;
      if (service !== 'verification') throw new Error(`another server answers, with status ${status}`);
      // It checks the secret before the method.
      if (code === 'method_not_allowed') return `the worker answers at ${base}`;
      throw fault(`VERIFICATION_SECRET: the worker refuses it: ${code}`, 'secret');
    },
  });
}

interface Role {
  readonly role: string;
  /** The database and its server's start, which two URLs of one database share. */
  readonly database: string;
  readonly superuser: boolean;
  /** It may create tables, or owns those that exist. */
  readonly owns: boolean;
}

/** Asks for rights only, so that it can be made before the schema is there. Never throws. */
export async function checkDatabase(
  env: Pick<Environment, 'DATABASE_URL' | 'PORT_POOL_DATABASE_URL'>,
): Promise<PartCheck> {
  const { DATABASE_URL: url, PORT_POOL_DATABASE_URL: privileged } = env;
  if (url === undefined)
    return skippedPart('database', 'DATABASE_URL is unset: the embedded database is used');
  return await checkPart('database', {
    fix: 'silent',
    async ask(_signal, fault) {
      const api = await roleAt('DATABASE_URL', url);
      if (privileged === undefined) {
        if (api.owns) return `${api.role} has all rights`;
        throw fault(
          `DATABASE_URL: ${api.role} may not create the schema, and PORT_POOL_DATABASE_URL is unset`,
          'owner',
        );
      }
      const owner = await roleAt('PORT_POOL_DATABASE_URL', privileged);
      if (owner.database !== api.database) {
        throw fault('PORT_POOL_DATABASE_URL and DATABASE_URL name different databases', 'apart');
      }
      if (!owner.owns)
        throw fault(`PORT_POOL_DATABASE_URL: ${owner.role} may not create the schema`, 'owner');
      if (api.superuser || api.owns) {
        const right = api.superuser ? 'is a superuser' : 'may create tables';
        throw fault(`DATABASE_URL: ${api.role} ${right}, so it reaches the port pool`, 'api');
      }
      return `${api.role} owns nothing, and ${owner.role} the schema`;
    },
  });
}

async function roleAt(setting: string, url: string): Promise<Role> {
  const db: ConnectedDatabase = connectPostgres(url, () => undefined);
  try {
    const { rows } = await sql<Role>`
      select current_user as role,
        current_database() || ' ' || pg_postmaster_start_time() as database,
        (select rolsuper from pg_roles where rolname = current_user) as superuser,
        has_schema_privilege('public', 'create') as owns`.execute(db);
    const [role] = rows;
    if (role === undefined) throw new Error('it answers nothing');
    return role;
  } catch (error) {
    throw new Error(`${setting}: ${textOfError(error)}`);
  } finally {
    await db.destroy();
  }
}
