import { join } from 'node:path';
import { styleText } from 'node:util';
import { z } from 'zod';
import { type R2Options, r2Client } from '../clients/r2.ts';
import { Home } from './instance/home.ts';
import { demandSite, type Where } from './instance/provisioner-client.ts';
import { readRun } from './instance/run-file.ts';
import { CliError } from './output/cli-error.ts';

export interface LogsOptions {
  readonly day?: string;
  readonly status?: string;
  readonly json?: true;
}

/** What a line shows of a record; `--json` shows all of it. */
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
});
type Record = z.infer<typeof record>;

/** As in wrangler.jsonc. */
const BUCKET = 'tagyard-raw-logs';
/** The emulator has no account to share. */
const UNPACED = { rate: 1e6, burst: 1e6 };

/**
 * Prints a site's requests of one day (UTC), batch by batch as the edge wrote them. A record whose request id was
 * there before is marked as a duplicate: a caller that names its own id may send it twice.
 */
export async function logs(where: Where, site: string, options: LogsOptions): Promise<void> {
  const day = options.day ?? new Date().toISOString().slice(0, 10);
  if (!z.iso.date().safeParse(day).success) throw new CliError('--day takes a date such as 2026-01-31');
  const { status = '' } = options;
  if (!/^(?:|[1-5](?:\d\d|xx))$/.test(status)) throw new CliError('--status takes 404 or 5xx, say');
  const wanted = new RegExp(`^${status.replace('xx', '\\d\\d')}`);

  const bucket = r2Client(await bucketOf(where));
  const seen = new Set<string>();
  for await (const key of bucket.keys(`raw/dt=${day}/`)) {
    for (const line of (await bucket.text(key)).split('\n')) {
      if (line === '') continue;
      const one = record.parse(JSON.parse(line));
      if (one.site !== site) continue;
      const duplicate = seen.has(one.requestId);
      seen.add(one.requestId);
      if (!wanted.test(String(one.status))) continue;
      const marked = duplicate ? { ...one, duplicate } : one;
      process.stdout.write(options.json ? `${JSON.stringify(marked)}\n` : renderRecord(one, duplicate));
    }
  }
  // Asked only now: a site that is long gone may have records of its days.
  if (seen.size === 0) await demandSite(where, site);
}

/** Cloudflare's own bucket where the environment names an account, else that of the embedded instance of this home. */
async function bucketOf({ home, env }: Where): Promise<R2Options> {
  if (env.CLOUDFLARE_ACCOUNT_ID) {
    return {
      url: env.CLOUDFLARE_API_URL || 'https://api.cloudflare.com/client/v4',
      token: env.CLOUDFLARE_API_TOKEN ?? '',
      accountId: env.CLOUDFLARE_ACCOUNT_ID,
      bucket: BUCKET,
    };
  }
  const { cloudflare } = await readRun(join(home, 'run.json'));
  const { cloudflareToken: token } = await new Home(home).instance();
  return { ...cloudflare, token, bucket: BUCKET, ...UNPACED };
}

function renderRecord(
  { time, status, method, route, duration, cache, country, error }: Record,
  duplicate: boolean,
): string {
  const colour = status >= 500 ? 'red' : status >= 400 ? 'yellow' : 'green';
  const rest = [cache, country, error, duplicate ? 'duplicate' : null].filter((text) => text !== null);
  const ms = `${duration} ms`.padStart(8);
  const start = `${time}  ${styleText(colour, String(status))}  ${method.padEnd(7)} ${route.padEnd(28)}`;
  return `${start} ${ms}  ${rest.join(' ')}`.trimEnd().concat('\n');
}
