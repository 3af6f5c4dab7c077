import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { writeDurably } from '../../base/durable.ts';
import { cidrRange } from './policy.ts';

/** As published on cloudflare.com/ips on 2026-09-29: what is believed until its API was asked once. */
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
/** Between two tries of a refresh that fails. */
const RETRY_MS = 10 * 60 * 1000;

/** An answer that names nobody, or half the internet, is none. */
const rangesSchema = z.array(cidrRange).min(1).max(500);
const fileSchema = z.strictObject({ askedAt: z.number(), ranges: rangesSchema });

export interface CloudflareRanges {
  /** The last good answer, sorted; before there was one, those of the release. */
  current(): readonly string[];
  /** Asks again where the answer is older than a day. Never throws: a failure keeps what there is. */
  refresh(): Promise<void>;
}

interface CloudflareRangesDeps {
  /** Where the last good answer is kept; lost or corrupt, it is asked for anew. */
  readonly file: string;
  readonly ask: () => Promise<readonly string[]>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export async function cloudflareRanges({ file, ask, now }: CloudflareRangesDeps): Promise<CloudflareRanges> {
  let known = await recall(file);
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
        // The last good answer stays, as old as it is: Cloudflare adds a range less than once a year.
      }
    },
  };
}

async function recall(file: string): Promise<z.output<typeof fileSchema>> {
  try {
    return fileSchema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    return { askedAt: Number.NEGATIVE_INFINITY, ranges: KNOWN_CLOUDFLARE_RANGES.toSorted() };
  }
}
