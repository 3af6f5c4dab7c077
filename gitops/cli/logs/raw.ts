import { join } from 'node:path';
import { z } from 'zod';
import { counted } from '../../../base/text.ts';
import { type R2Options, r2Client } from '../../clients/r2.ts';
import { Home } from '../instance/home.ts';
import type { CliContext } from '../instance/provisioner-client.ts';
import { readRun } from '../instance/run-file.ts';
import { QUICK_MS, SLOW_MS, timeoutMs } from '../instance/timeout.ts';
import { CliError } from '../output/cli-error.ts';

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
export type LogRecord = z.infer<typeof record>;

/** As in wrangler.jsonc. */
const BUCKET = 'tagyard-raw-logs';
/** An instance's emulator doesn't count calls for objects (`HOME_LIMITS`). */
const UNLIMITED = { rate: 1e6, burst: 1e6 };

/** All records of a day. Reports unreadable lines on standard error; the exit code is then 1. Throws `CliError`. */
export async function* rawRecords(context: CliContext, day: string): AsyncGenerator<LogRecord> {
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
      process.stderr.write(
        `tagyard: ${key}: ${counted(unreadable, 'line is not a record and was', 'lines are not records and were')} skipped\n`,
      );
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
