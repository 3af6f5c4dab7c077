import { userInfo } from 'node:os';
import { join } from 'node:path';
import { visibleTexts } from '../../base/visible.ts';
import { CliError } from '../output/cli-error.ts';
import { readRun } from './run-file.ts';

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
}

/**
 * Calls the provisioner at `INFRA_PROVISIONER_URL` with `INFRA_SECRET`, by default the embedded instance of this home.
 * Throws `CliError` with the problem's detail for every answer but a 2xx.
 */
export async function callProvisioner(
  context: CliContext,
  { method, path, body, headers }: ProvisionerCall,
): Promise<unknown> {
  const { url, secret } = await addressOf(context);
  const response = await fetch(new URL(path, url), {
    method,
    headers: {
      'x-secret': secret,
      'x-actor': actor(),
      ...headers,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch((cause: unknown) => {
    throw new CliError(`the provisioner at ${url} can't be reached`, { cause });
  });
  // Names and messages come from git, where a person who may push can write escape sequences for terminals.
  const json: unknown = visibleTexts(await response.json());
  if (response.ok) return json;
  const fields = typeof json === 'object' && json !== null ? json : {};
  const message =
    'detail' in fields ? fields.detail : 'title' in fields ? fields.title : `status ${response.status}`;
  throw new CliError(String(message));
}

/** Throws `CliError` if the provisioner does not know the site: an empty list must not hide a mistyped name. */
export async function requireSite(context: CliContext, site: string): Promise<void> {
  await callProvisioner(context, { method: 'GET', path: `/sites/${encodeURIComponent(site)}` });
}

/** The operator's user name; commits record it as their author. */
function actor(): string {
  const { username } = userInfo();
  // A header may contain printable ASCII only.
  return username.replace(/[^\x21-\x7e]/g, '') || 'operator';
}

async function addressOf({ home, env }: CliContext): Promise<{ url: string; secret: string }> {
  if (env.INFRA_PROVISIONER_URL) return { url: env.INFRA_PROVISIONER_URL, secret: env.INFRA_SECRET ?? '' };
  return (await readRun(join(home, 'run.json'))).provisioner;
}
