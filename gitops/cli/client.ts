import { createClient, type TagyardClient } from '../../base/client/client.ts';
import { ApiProblem } from '../../base/client/problem.ts';
import { embeddedAccess } from './instance/embedded-access.ts';
import { fetchWhole } from './instance/fetch-whole.ts';
import { Home } from './instance/home.ts';
import { DEMO_OWNER, mintToken, OPERATOR } from './instance/issuer.ts';
import { ManagementClient } from './instance/management-client.ts';
import type { CliContext } from './instance/provisioner-client.ts';
import { readRun } from './instance/run-file.ts';
import { SLOW_MS, timeoutMs } from './instance/timeout.ts';
import { CliError, UsageError } from './output/cli-error.ts';

interface MemberArgument {
  readonly subject: string;
  readonly role: string;
}

/** Parses `<subject>:<role>`. The subject may contain colons (`google-oauth2:123`), the role may not. */
export function parseMember(text: string): MemberArgument {
  const colon = text.lastIndexOf(':');
  if (colon <= 0 || colon === text.length - 1) {
    throw new UsageError(
      `--member ${text}: give it as <subject>:<role>, for example ada@agency.example:owner`,
    );
  }
  return { subject: text.slice(0, colon), role: text.slice(colon + 1) };
}

/**
 * Adds a client with its members and prints its id. It calls `MANAGEMENT_URL` with `TAGYARD_TOKEN` (a JWT of a subject
 * in `SUPER_ADMINS`), by default the embedded instance of this home.
 */
export async function addClient(
  context: CliContext,
  name: string,
  members: readonly MemberArgument[],
): Promise<void> {
  const api = await operatorClient(context);
  process.stdout.write(`${await api.addClient(name, members)}\n`);
}

async function operatorClient(context: CliContext): Promise<ManagementClient> {
  return environmentClient(context, 'an operator') ?? (await embeddedOperator(context));
}

/** A client of the API at `MANAGEMENT_URL` with `TAGYARD_TOKEN`; `null` if the environment names none. */
export function environmentClient(context: CliContext, owner?: string): ManagementClient | null {
  const access = environmentAccess(context, owner);
  if (access === null) return null;
  return new ManagementClient(access.url, access.bearer, timeoutMs(context.env, SLOW_MS));
}

/** `MANAGEMENT_URL` and `TAGYARD_TOKEN`; `null` if the environment names no API. Throws `CliError` without a token. */
export function environmentAccess({ env }: CliContext, owner = 'a member') {
  const { MANAGEMENT_URL: url, TAGYARD_TOKEN: bearer } = env;
  if (!url) return null;
  if (!bearer) throw new CliError(`set TAGYARD_TOKEN beside MANAGEMENT_URL: the JWT of ${owner}`);
  return { url, bearer, token: async () => bearer };
}

/**
 * The management API as the caller of `TAGYARD_TOKEN`, by default that of the embedded instance as the demo's owner. Each
 * answer has the time limit of slow calls. Throws `CliError` where there is neither.
 */
export async function managementApi(context: CliContext): Promise<{ api: TagyardClient; url: string }> {
  const access = environmentAccess(context) ?? (await ownAccess(context));
  const service = { name: 'the management API', url: access.url };
  if (!URL.canParse(access.url)) throw new CliError(`MANAGEMENT_URL=${access.url} is not a URL`);
  const limitMs = timeoutMs(context.env, SLOW_MS);
  const fetch = (request: Request) => fetchWhole(service, request, limitMs);
  return { api: createClient({ ...access, fetch }), url: access.url };
}

async function ownAccess(context: CliContext) {
  const isOthers = Boolean(context.env.INFRA_PROVISIONER_URL);
  const access = isOthers ? null : await embeddedAccess(context, DEMO_OWNER).catch(() => null);
  if (access !== null) return access;
  throw new CliError(
    'this asks the management API: set MANAGEMENT_URL and TAGYARD_TOKEN, or run it where npm start runs (TAGYARD_HOME)',
  );
}

/** The outcome of `work`, with a problem that the API answers as `CliError`. */
export async function answered<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiProblem) throw new CliError(error.message, { cause: error });
    throw error;
  }
}

/** A client of the embedded instance's management API that acts as its operator. */
export async function embeddedOperator({ home: path, env }: CliContext): Promise<ManagementClient> {
  const home = new Home(path);
  const run = await readRun(home.at('run.json'));
  const token = await mintToken(await home.instance(), OPERATOR);
  return new ManagementClient(run.management.url, token, timeoutMs(env, SLOW_MS));
}
