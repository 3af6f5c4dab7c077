import { extname } from 'node:path';
import { fileStem, isCut } from '../../../base/file-stem.ts';
import { hostname, siteId } from '../../../sites/manifest/schema.ts';

/**
 * The name of the file with a key's vhosts: `acme.conf`, `acme@policy.conf` or `acme@metrics.acme.example.conf` for the
 * ending `.conf`. Neither a site's id nor a host name contains an `@` or a `~`. The name of a long key has only its start,
 * and a hash.
 */
export function fileNameOf(key: string, ending: `.${string}`): string {
  return `${fileStem(key.replace('/', '@'))}${ending}`;
}

/**
 * Reads the key from a name that `fileNameOf` made; a long key comes back as its `shortKey`. `fileNameOf` of the result
 * is the same name again. Returns any other file name unchanged.
 */
export function keyOf(fileName: string): string {
  const stem = fileName.slice(0, -extname(fileName).length);
  const [site, host, ...rest] = stem.split('@');
  const sane =
    siteId.safeParse(site).success &&
    (host === undefined || isCut(host) || host === 'policy' || hostname.safeParse(host).success);
  return sane && rest.length === 0 ? stem.replace('@', '/') : fileName;
}

/** The key that `keyOf` reads from the file's name: the key itself unless it is long. */
export function shortKey(key: string): string {
  return fileStem(key.replace('/', '@')).replace('@', '/');
}
