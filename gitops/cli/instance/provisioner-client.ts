import { userInfo } from 'node:os';
import { join } from 'node:path';
import { CliError } from '../output/cli-error.ts';
import { readRun } from './run-file.ts';

export interface Where {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * One call of the provisioner: `INFRA_PROVISIONER_URL` and `INFRA_SECRET` where they are set, else the embedded
 * instance of this home. Throws `CliError` with the provisioner's own words for anything but a 2xx.
 */
export async function callProvisioner(
  where: Where,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const { url, secret } = await address(where);
  const answer = await fetch(new URL(path, url), {
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
  const json: unknown = await answer.json();
  if (answer.ok) return json;
  const fields = typeof json === 'object' && json !== null ? json : {};
  const words =
    'detail' in fields ? fields.detail : 'title' in fields ? fields.title : `status ${answer.status}`;
  throw new CliError(String(words));
}

/** Throws `CliError` where the provisioner knows no such site: nothing to show is an answer only of one that is there. */
export async function demandSite(where: Where, site: string): Promise<void> {
  await callProvisioner(where, 'GET', `/sites/${encodeURIComponent(site)}`);
}

/** Who sits at the terminal; stands in the commits that come of it. */
function actor(): string {
  const { username } = userInfo();
  // A header takes printable ASCII only.
  return username.replace(/[^\x21-\x7e]/g, '') || 'operator';
}

async function address({ home, env }: Where): Promise<{ url: string; secret: string }> {
  if (env.INFRA_PROVISIONER_URL) return { url: env.INFRA_PROVISIONER_URL, secret: env.INFRA_SECRET ?? '' };
  return (await readRun(join(home, 'run.json'))).provisioner;
}
