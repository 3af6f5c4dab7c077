import { z } from 'zod';
import { writeDurably } from '../../../base/durable.ts';
import { readJsonFile } from '../../../base/json-file.ts';
import { cidrRange } from './policy.ts';

/** As published on cloudflare.com/ips on 2026-09-29; used until the API has answered once. */
export const KNOWN_CLOUDFLARE_RANGES: readonly string[] = [
  '173.245.48.0/20',
  '103.21.244.0/22',
  '103.22.200.0/22',
  '103.31.4.0/22',
  '141.101.64.0/18',
  '108.162.192.0/18',
  '190.93.240.0/20',
  '188.114.96.0/20',
  '197.234.240.0/22',
  '198.41.128.0/17',
  '162.158.0.0/15',
  '104.16.0.0/13',
  '104.24.0.0/14',
  '172.64.0.0/13',
  '131.0.72.0/22',
  '2400:cb00::/32',
  '2606:4700::/32',
  '2803:f800::/32',
  '2405:b500::/32',
  '2405:8100::/32',
  '2a06:98c0::/29',
  '2c0f:f248::/32',
];

const DAY_MS = 24 * 60 * 60 * 1000;
/** The pause after a failed refresh. */
const RETRY_MS = 10 * 60 * 1000;

/** An empty answer, or one with too wide ranges, is refused. */
const rangesSchema = z.array(cidrRange).min(1).max(500);
const fileSchema = z.strictObject({ askedAt: z.number(), ranges: rangesSchema });

export interface CloudflareRanges {
  /** The last good answer, sorted; before the first one, the ranges in this release. */
  current(): readonly string[];
  /** If the last answer is older than a day, asks the API. Never throws: a failure keeps the last good answer. */
  refresh(): Promise<void>;
}

interface CloudflareRangesDeps {
  /** The file with the last good answer; if it is lost or corrupt, the API is asked again. */
  readonly file: string;
  readonly ask: () => Promise<readonly string[]>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export async function cloudflareRanges({ file, ask, now }: CloudflareRangesDeps): Promise<CloudflareRanges> {
  let known = await readLast(file);
  let triedAt = Number.NEGATIVE_INFINITY;
  return {
    current: () => known.ranges,
    async refresh() {
      const isFresh = now() - known.askedAt < DAY_MS && known.askedAt <= now();
      if (isFresh || now() - triedAt < RETRY_MS) return;
      triedAt = now();
      try {
        const ranges = rangesSchema.parse(await ask()).toSorted();
        known = { askedAt: now(), ranges };
        await writeDurably(file, `${JSON.stringify(known)}\n`);
      } catch {
        // The last good answer stays valid, however old: Cloudflare adds a range less than once a year.
      }
    },
  };
}

async function readLast(file: string): Promise<z.output<typeof fileSchema>> {
  try {
    return await readJsonFile(file, fileSchema);
  } catch {
    return { askedAt: Number.NEGATIVE_INFINITY, ranges: KNOWN_CLOUDFLARE_RANGES.toSorted() };
  }
}
