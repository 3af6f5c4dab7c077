import { Home } from './instance/home.ts';
import { mintToken, OPERATOR } from './instance/issuer.ts';
import { ManagementClient } from './instance/management-client.ts';
import { readRun } from './instance/run-file.ts';
import { CliError } from './output/cli-error.ts';

export interface MemberWish {
  readonly subject: string;
  readonly role: string;
}

/** `<subject>:<role>`; the subject may hold colons itself (`auth0|x`, `google-oauth2:123`), the role may not. */
export function parseMember(text: string): MemberWish {
  const colon = text.lastIndexOf(':');
  if (colon <= 0 || colon === text.length - 1) {
    throw new CliError(`--member ${text}: give it as <subject>:<role>, ada@agency.example:owner say`);
  }
  return { subject: text.slice(0, colon), role: text.slice(colon + 1) };
}

/**
 * Adds a client with its members, and prints its id. In production `MANAGEMENT_URL` and `TAGYARD_TOKEN` (a JWT of a
 * subject in `SUPER_ADMINS`) say where and as whom; otherwise the embedded instance of this home is asked.
 */
export async function addClient(
  { home, env }: { home: string; env: NodeJS.ProcessEnv },
  name: string,
  members: readonly MemberWish[],
): Promise<void> {
  const api = await operatorClient(home, env);
  process.stdout.write(`${await api.addClient(name, members)}\n`);
}

async function operatorClient(home: string, env: NodeJS.ProcessEnv): Promise<ManagementClient> {
  if (env.MANAGEMENT_URL) {
    if (!env.TAGYARD_TOKEN)
      throw new CliError('MANAGEMENT_URL needs TAGYARD_TOKEN beside it, a JWT of a super-admin');
    return new ManagementClient(env.MANAGEMENT_URL, env.TAGYARD_TOKEN);
  }
  return await embeddedOperator(new Home(home));
}

/** The embedded instance's management, as its own operator. */
export async function embeddedOperator(home: Home): Promise<ManagementClient> {
  const run = await readRun(home.at('run.json'));
  return new ManagementClient(run.management.url, await mintToken(await home.instance(), OPERATOR));
}
