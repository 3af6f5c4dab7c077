import { z } from 'zod';
import { writeDurably } from '../../../base/durable.ts';
import { KNOWN_CLOUDFLARE_RANGES } from '../../../base/foreign-addresses.ts';
import { readJsonFile } from '../../../base/json-file.ts';
import { cidrRange } from './policy.ts';

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
