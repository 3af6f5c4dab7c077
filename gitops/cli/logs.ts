import { z } from 'zod';
import { counted } from '../../base/text.ts';
import { environmentAccess, environmentClient } from './client.ts';
import { embeddedAccess } from './instance/embedded-access.ts';
import { type CliContext, requireSite } from './instance/provisioner-client.ts';
import { type LogFilters, liveLogs, pastLogs, renderLog, type ShownLog } from './logs/printed.ts';
import { rawRecords } from './logs/raw.ts';
import { renderRecord } from './logs/request-line.ts';
import {
  type ContainerRequests,
  type Gap,
  liveRequests,
  pastRequests,
  type RequestFilters,
  type ShownRequest,
} from './logs/requests.ts';
import { CliError, UsageError } from './output/cli-error.ts';
import { embeddedContainer } from './snippet.ts';

export interface LogsOptions {
  readonly day?: string;
  readonly status?: string;
  readonly json?: true;
  readonly follow?: true;
  readonly since?: string;
  readonly where?: readonly string[];
  readonly containers?: true;
}

const DAY_MS = 86_400_000;
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS };
const FILTERS = ['route', 'status', 'cache', 'error', 'requestId', 'method', 'country', 'probes'] as const;
const LOG_FILTERS = ['q', 'requestId', 'level', 'stream', 'kind'] as const;
/** The role in which the command reads the embedded instance. */
const ROLE = 'viewer';

/**
 * Prints a site's requests, or with `--containers` the lines of its containers. With `--follow`, `--since` or `--where`
 * it asks the management API for the requests; else it reads the raw logs of one day (UTC) itself, in the order of the
 * edge's batches.
 */
export async function logs(context: CliContext, site: string, options: LogsOptions): Promise<void> {
  const { follow, since, where = [], day, status = '' } = options;
  if (options.containers === true) return await containerLines(context, site, options);
  if (day !== undefined && !z.iso.date().safeParse(day).success)
    throw new UsageError('--day must be a date, for example 2026-01-31');
  if (!/^(?:|[1-5](?:\d\d|xx))$/.test(status))
    throw new UsageError('--status must be a status or a class of them, for example 404 or 5xx');
  if (follow === undefined && since === undefined && where.length === 0) {
    return await rawLogs(context, site, options);
  }
  if (day !== undefined && (follow === true || since !== undefined))
    throw new UsageError('--day is a whole day: give it without --follow and --since');
  const filters = {
    ...filtersOf<RequestFilters>(where, FILTERS),
    ...(status === '' ? {} : { status }),
  };
  const from = since === undefined ? undefined : sinceOf(since);
  const api = await accessTo(context, site);
  let past: readonly ShownRequest[] = [];
  if (day !== undefined || from !== undefined || follow === undefined) {
    const range =
      day === undefined
        ? { ...(from === undefined ? {} : { from }) }
        : { from: `${day}T00:00:00Z`, to: new Date(Date.parse(day) + DAY_MS).toISOString() };
    past = await printPast(api, { ...filters, ...range }, options);
  }
  if (follow !== true) return;
  // The past is printed in the order of time, but the stream sends rows in the order of arrival: it repeats printed
  // rows that arrived after the last printed one.
  const printed = new Set(past.map(({ id }) => id));
  for await (const one of liveRequests(api, filters, past.at(-1)?.id)) {
    if ('missed' in one || !printed.delete(one.id)) printLive(one, options);
  }
}

/** Prints what the site's tag servers have printed: of the last 24 hours, since a time, or as it arrives. */
async function containerLines(context: CliContext, site: string, options: LogsOptions): Promise<void> {
  const { follow, since, where = [], day, status, json } = options;
  if (day !== undefined || status !== undefined)
    throw new UsageError('--day and --status are for requests: with --containers, give --since or --where');
  const filters = filtersOf<LogFilters>(where, LOG_FILTERS);
  const from = since === undefined ? {} : { from: sinceOf(since) };
  const api = await accessTo(context, site);
  const show = (one: ShownLog) => process.stdout.write(json ? `${JSON.stringify(one)}\n` : renderLog(one));
  let last: string | undefined;
  if (since !== undefined || follow === undefined) {
    const { logs: past, isCut } = await pastLogs(api, { ...filters, ...from });
    if (isCut) process.stderr.write('tagyard: there are older lines; give a shorter time or more filters\n');
    for (const one of past) show(one);
    last = past.at(-1)?.id;
  }
  if (follow !== true) return;
  for await (const one of liveLogs(api, filters, last)) {
    if ('missed' in one)
      process.stderr.write(
        `tagyard: ${one.missed === null ? 'some lines are' : counted(one.missed, 'line is', 'lines are')} not kept any more\n`,
      );
    else show(one);
  }
}

async function printPast(
  api: ContainerRequests,
  query: Parameters<typeof pastRequests>[1],
  options: LogsOptions,
): Promise<readonly ShownRequest[]> {
  const { requests, isCut, missing } = await pastRequests(api, query);
  if (isCut) process.stderr.write('tagyard: there are older requests; give a shorter time or more filters\n');
  for (const one of requests) printLive(one, options);
  if (missing.length > 0) {
    process.stderr.write(`tagyard: not all requests of ${missing.join(', ')} can be searched yet\n`);
    process.exitCode = 1;
  }
  return requests;
}

function printLive(one: ShownRequest | Gap, { json }: LogsOptions): void {
  if ('missed' in one) {
    process.stderr.write(
      `tagyard: ${one.missed === null ? 'some requests were' : counted(one.missed, 'request was', 'requests were')} not sent; --since shows them\n`,
    );
  } else process.stdout.write(json ? `${JSON.stringify(one)}\n` : renderRecord(one));
}

/** Throws `CliError` for a text that isn't `name=value`, or whose name is not that of a filter. */
function filtersOf<Filters>(where: readonly string[], names: readonly string[]): Filters {
  const pairs = where.map((text) => {
    const at = text.indexOf('=');
    const name = names.find((one) => one === text.slice(0, at));
    if (name !== undefined) return [name, text.slice(at + 1)];
    throw new UsageError(`--where ${text}: give it as <name>=<value> with one of ${names.join(', ')}`);
  });
  return Object.fromEntries(pairs) as Filters; // the API refuses other values
}

/** The time (ISO 8601) so long ago. Throws `CliError`. */
export function sinceOf(text: string): string {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * (UNITS[unit] ?? Number.NaN);
  if (Number.isNaN(ms)) throw new UsageError(`--since ${text}: give a time such as 90s, 30m, 2h or 7d`);
  return new Date(Date.now() - ms).toISOString();
}

/** The API that the environment names, else that of this home's instance. Throws `CliError` where neither is there. */
async function accessTo(context: CliContext, site: string): Promise<ContainerRequests> {
  const given = environmentAccess(context);
  const client = environmentClient(context);
  try {
    const container =
      client === null ? await embeddedContainer(context, site, ROLE) : await client.containerOfSite(site);
    if (container !== null) {
      const access = given ?? (await embeddedAccess(context, `dev-${ROLE}`));
      return { url: access.url, token: access.token, container: container.id };
    }
  } catch (cause) {
    if (!(cause instanceof CliError)) throw cause;
    const message = `--follow, --since, --where and --containers ask the management API: ${cause.message}`;
    throw new CliError(message, { cause });
  }
  throw new CliError(`there is no site ${site}, or the token's subject is not a member of its client`);
}

async function rawLogs(context: CliContext, site: string, options: LogsOptions): Promise<void> {
  const day = options.day ?? new Date().toISOString().slice(0, 10);
  const { status = '' } = options;
  const wanted = new RegExp(`^${status.replace('xx', '\\d\\d')}`);
  let isEmpty = true;
  for await (const one of rawRecords(context, day)) {
    if (one.site !== site) continue;
    isEmpty = false;
    if (!wanted.test(String(one.status))) continue;
    process.stdout.write(options.json ? `${JSON.stringify(one)}\n` : renderRecord(one));
  }
  // A removed site may still have records, so its name is checked only if there are none.
  if (isEmpty) await requireSite(context, site);
}
