import { join } from 'node:path';
import { styleText } from 'node:util';
import { z } from 'zod';
import { type R2Options, r2Client } from '../clients/r2.ts';
import { Home } from './instance/home.ts';
import { type CliContext, requireSite } from './instance/provisioner-client.ts';
import { readRun } from './instance/run-file.ts';
import { QUICK_MS, SLOW_MS, timeoutMs } from './instance/timeout.ts';
import { CliError } from './output/cli-error.ts';

export interface LogsOptions {
  readonly day?: string;
  readonly status?: string;
  readonly json?: true;
}

/** The fields that a line shows. `--json` shows the whole record. */
const record = z.looseObject({
  time: z.string(),
  requestId: z.string(),
  method: z.string(),
  route: z.string(),
  status: z.number(),
  duration: z.number(),
  site: z.nullable(z.string()),
  cache: z.nullable(z.string()),
  country: z.nullable(z.string()),
  error: z.nullable(z.string()),
  // Records of earlier versions lack it.
  cause: z.nullish(z.string()),
});
type LogRecord = z.infer<typeof record>;

/** As in wrangler.jsonc. */
const BUCKET = 'tagyard-raw-logs';
/** The emulator has no rate limit. */
const UNLIMITED = { rate: 1e6, burst: 1e6 };

/**
 * Prints a site's requests of one day (UTC) in the order of the edge's batches. The second record with the same request
 * id is marked as a duplicate: callers may choose the id, so it is not unique.
 */
export async function logs(context: CliContext, site: string, options: LogsOptions): Promise<void> {
  const day = options.day ?? new Date().toISOString().slice(0, 10);
  if (!z.iso.date().safeParse(day).success)
    throw new CliError('--day must be a date, for example 2026-01-31');
  const { status = '' } = options;
  if (!/^(?:|[1-5](?:\d\d|xx))$/.test(status))
    throw new CliError('--status must be a status or a class of them, for example 404 or 5xx');
  const wanted = new RegExp(`^${status.replace('xx', '\\d\\d')}`);

  const seen = new Set<string>();
  for await (const one of records(context, day)) {
    if (one.site !== site) continue;
    const duplicate = seen.has(one.requestId);
    seen.add(one.requestId);
    if (!wanted.test(String(one.status))) continue;
    const marked = duplicate ? { ...one, duplicate } : one;
    process.stdout.write(options.json ? `${JSON.stringify(marked)}\n` : renderRecord(one, duplicate));
  }
  // A removed site may still have records, so its name is checked only if there are none.
  if (seen.size === 0) await requireSite(context, site);
}

/** All records of a day. Reports unreadable lines on standard error; the exit code is then 1. Throws `CliError`. */
async function* records(context: CliContext, day: string): AsyncGenerator<LogRecord> {
  const bucket = r2Client(await bucketOf(context));
  try {
    for await (const key of bucket.keys(`raw/dt=${day}/`)) {
      let unreadable = 0;
      for (const line of (await bucket.text(key)).split('\n')) {
        if (line === '') continue;
        const parsed = parseRecord(line);
        if (parsed === null) unreadable += 1;
        else yield parsed;
      }
      if (unreadable === 0) continue;
      process.stderr.write(`tagyard: ${unreadable} lines of ${key} are not records and were skipped\n`);
      process.exitCode = 1;
    }
  } catch (cause) {
    // The client's errors name the bucket and the status, or the time limit.
    throw new CliError(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

function parseRecord(line: string): LogRecord | null {
  try {
    return record.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    return null;
  }
}

/** Cloudflare's bucket if the environment names an account, else the bucket of the embedded instance of this home. */
async function bucketOf({ home, env }: CliContext): Promise<R2Options> {
  if (env.CLOUDFLARE_ACCOUNT_ID) {
    return {
      url: env.CLOUDFLARE_API_URL || 'https://api.cloudflare.com/client/v4',
      token: env.CLOUDFLARE_API_TOKEN ?? '',
      accountId: env.CLOUDFLARE_ACCOUNT_ID,
      bucket: BUCKET,
      timeoutMs: timeoutMs(env, SLOW_MS),
    };
  }
  const { cloudflare } = await readRun(join(home, 'run.json'));
  const { cloudflareToken: token } = await new Home(home).instance();
  return { ...cloudflare, token, bucket: BUCKET, ...UNLIMITED, timeoutMs: timeoutMs(env, QUICK_MS) };
}

function renderRecord(
  { time, status, method, route, duration, cache, country, error, cause }: LogRecord,
  duplicate: boolean,
): string {
  const colour = status >= 500 ? 'red' : status >= 400 ? 'yellow' : 'green';
  const rest = [cache, country, error, cause, duplicate ? 'duplicate' : null].filter((text) => !!text);
  const ms = `${duration} ms`.padStart(8);
  const start = `${time}  ${styleText(colour, String(status))}  ${method.padEnd(7)} ${route.padEnd(28)}`;
  return `${start} ${ms}  ${rest.join(' ')}`.trimEnd().concat('\n');
}
