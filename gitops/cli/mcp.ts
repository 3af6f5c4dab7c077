import { environmentAccess } from './client.ts';
import { embeddedAccess } from './instance/embedded-access.ts';
import { fetchWhole } from './instance/fetch-whole.ts';
import { DEMO_OWNER } from './instance/issuer.ts';
import { problemOf } from './instance/problem.ts';
import type { CliContext } from './instance/provisioner-client.ts';
import { QUICK_MS, SLOW_MS, timeoutMs } from './instance/timeout.ts';
import { serveTools } from './mcp/server.ts';
import { toolsOf } from './mcp/tools.ts';
import { CliError } from './output/cli-error.ts';

export interface McpVerbOptions {
  readonly allowChanges?: true;
  readonly as?: string;
}

/** Longer answers are cut; this is about a third of what a model reads at once. */
const MOST_CHARACTERS = 50_000;

/**
 * Serves the management API as tools of the Model Context Protocol. The tools are made from the document that the running
 * API serves. They call `MANAGEMENT_URL` with `TAGYARD_TOKEN`, by default the embedded instance of this home.
 */
export async function mcp(context: CliContext, { allowChanges, as }: McpVerbOptions): Promise<void> {
  const access = environmentAccess(context) ?? (await embeddedAccess(context, as ?? DEMO_OWNER));
  const tools = toolsOf(await documentOf(access.url, timeoutMs(context.env, QUICK_MS)));
  const target = { ...access, timeoutMs: timeoutMs(context.env, SLOW_MS), mostCharacters: MOST_CHARACTERS };
  await serveTools({ tools, target, allowsChanges: allowChanges === true });
}

async function documentOf(url: string, limitMs: number): Promise<unknown> {
  const service = { name: 'the management API', url };
  const address = `${url.replace(/\/+$/, '')}/openapi.json`;
  if (!URL.canParse(address)) throw new CliError(`MANAGEMENT_URL=${url} is not a URL`);
  const response = await fetchWhole(service, new Request(address), limitMs);
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) throw problemOf(service, response.status, body);
  if (body !== null) return body;
  throw new CliError(`${address} is not an OpenAPI document; check MANAGEMENT_URL`);
}
