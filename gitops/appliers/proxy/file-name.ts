import { extname } from 'node:path';
import { hostname, siteId } from '../../manifest/schema.ts';

/**
 * The file that a key's vhosts stand in, and back: `acme.conf` and `acme@metrics.acme.example.conf` for the ending
 * `.conf`. Neither a site's id nor a host name holds an `@`.
 */
export function fileNameOf(key: string, ending: `.${string}`): string {
  return `${key.replace('/', '@')}${ending}`;
}

/** A file that no key of ours can have stands for itself. */
export function keyOf(fileName: string): string {
  const stem = fileName.slice(0, -extname(fileName).length);
  const [site, host, ...rest] = stem.split('@');
  const sane = siteId.safeParse(site).success && (host === undefined || hostname.safeParse(host).success);
  return sane && rest.length === 0 ? stem.replace('@', '/') : fileName;
}
