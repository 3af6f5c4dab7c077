import { extname } from 'node:path';
import { hostname, siteId } from '../../manifest/schema.ts';

/**
 * The name of the file with a key's vhosts: `acme.conf` or `acme@metrics.acme.example.conf` for the ending `.conf`.
 * Neither a site's id nor a host name contains an `@`.
 */
export function fileNameOf(key: string, ending: `.${string}`): string {
  return `${key.replace('/', '@')}${ending}`;
}

/** Reads a `fileNameOf` back. Returns any other file name unchanged. */
export function keyOf(fileName: string): string {
  const stem = fileName.slice(0, -extname(fileName).length);
  const [site, host, ...rest] = stem.split('@');
  const sane = siteId.safeParse(site).success && (host === undefined || hostname.safeParse(host).success);
  return sane && rest.length === 0 ? stem.replace('@', '/') : fileName;
}
