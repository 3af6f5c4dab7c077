import { type R2Options, r2Client } from '../../gitops/clients/r2.ts';
import type { RawObjects } from './raw-objects.ts';

/** A bucket behind Cloudflare's API, with its limit of calls. */
export function cloudflareObjects(options: R2Options): RawObjects {
  const { list, read, write, remove } = r2Client(options);
  return { list, read, write, remove };
}
