import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { escapeHiddenIn } from '../../../base/text.ts';
import { CliError } from '../output/cli-error.ts';
import { callService } from './call.ts';
import { fetchJson } from './fetch-whole.ts';
import { problemOf } from './problem.ts';
import { readRun } from './run-file.ts';
import { QUICK_MS, SLOW_MS, timeoutMs } from './timeout.ts';

/** What every verb gets: the instance's home, and the environment that may name another installation. */
export interface CliContext {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
}

interface ProvisionerCall {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds; the default depends on the method. `TAGYARD_TIMEOUT` takes precedence. */
  readonly timeoutMs?: number;
}

/**
 * Calls the provisioner at `INFRA_PROVISIONER_URL` with `INFRA_SECRET` or `INFRA_READ_TOKEN`, by default the embedded
 * instance of this home, else that of this host by its settings.
 * Throws `ServiceProblem` for every answer but a 2xx, and `CliError` where there is no answer in time.
 */
export async function callProvisioner(
  context: CliContext,
  { method, path, body, headers, timeoutMs: given }: ProvisionerCall,
): Promise<unknown> {
  const { url, secret } = await addressOf(context);
  const service = { name: 'the provisioner', url };
  if (!URL.canParse(path, url)) throw new CliError(`INFRA_PROVISIONER_URL=${url} is not a URL`);
  const address = new URL(path, url);
  const request = {
    method,
    headers: {
      'x-secret': headerValue('INFRA_SECRET', secret),
      'x-actor': actor(),
      ...headers,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
  const limit = timeoutMs(context.env, given ?? (method === 'GET' ? QUICK_MS : SLOW_MS));
  const call = { method, path: address.pathname, timeoutMs: limit };
  const response = await callService(service, call, (signal) => fetchJson(address, { ...request, signal }));
  // Names and messages come from git. Anyone who may push can put escape sequences for terminals there.
  const answer = escapeHiddenIn(response.json);
  if (response.status < 200 || response.status > 299) throw problemOf(service, response.status, answer);
  if (answer !== null) return answer;
  throw new CliError(`${url} did not answer like a provisioner; check INFRA_PROVISIONER_URL`);
}

/** Throws `CliError` if a header can't carry the text. */
function headerValue(name: string, text: string): string {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) return text;
  throw new CliError(`${name} has a character that a header can't carry, for example a line break`);
}

/** Maximum length of a reason, as in the provisioner. */
const MAX_REASON = 200;

/** A reason as the value of a header: one line of at most 200 characters, its UTF-8 bytes as Latin-1. */
export function headerText(text: string): string {
  const line = text
    .replace(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, MAX_REASON);
  return Buffer.from(line, 'utf8').toString('latin1');
}

/** Throws `CliError` if the provisioner does not know the site: an empty list must not hide a mistyped name. */
export async function requireSite(context: CliContext, site: string): Promise<void> {
  await callProvisioner(context, { method: 'GET', path: `/sites/${encodeURIComponent(site)}` });
}

/** The operator's user name; commits record it as their author. */
function actor(): string {
  const username = userName();
  // Only printable ASCII without spaces, so that any header can carry it.
  return username.replace(/[^\x21-\x7e]/g, '') || 'operator';
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // The system has no entry for the user id, for example in a container.
    return '';
  }
}

/** Where the provisioner of these settings listens; `undefined`: they are no host's. */
export function hostUrl(env: NodeJS.ProcessEnv): string | undefined {
  const { PROVISIONER_ADDRESS, PROVISIONER_PORT, INFRA_SECRET, INFRA_READ_TOKEN } = env;
  if (!INFRA_SECRET && !INFRA_READ_TOKEN) return undefined;
  return `http://${PROVISIONER_ADDRESS || '127.0.0.1'}:${PROVISIONER_PORT || 8081}`;
}

async function addressOf({ home, env }: CliContext): Promise<{ url: string; secret: string }> {
  const secret = env.INFRA_SECRET || env.INFRA_READ_TOKEN;
  if (env.INFRA_PROVISIONER_URL) return { url: env.INFRA_PROVISIONER_URL, secret: secret ?? '' };
  const file = join(home, 'run.json');
  // The settings of a host. An instance on this machine may run beside such settings, which are not its own.
  const url = hostUrl(env);
  if (secret && url !== undefined && !existsSync(file)) return { url, secret };
  return (await readRun(file)).provisioner;
}
