import type { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { DISCARDED } from '../../egress-target.ts';

const row = z.object({ type: z.string(), content: z.string() });
/** A chain of this many aliases is taken for a loop. */
const MAX_ALIASES = 8;

/**
 * Resolves a name to the address of its origin by the zones in `db`, or to `null`. A proxied name without an origin
 * resolves to `100::`, its only address. Like Cloudflare, it uses a wildcard for a name that has no record at or below
 * it (RFC 4592 2.2.1, 3.3.1).
 */
export function zoneResolver(db: DatabaseSync): (host: string) => string | null {
  const recordsOf = db.prepare('SELECT type, content FROM records WHERE name = ? ORDER BY type, content');
  const below = db.prepare('SELECT 1 FROM records WHERE name = ?1 OR substr(name, -length(?2)) = ?2 LIMIT 1');
  const exists = (name: string) => below.get(name, `.${name}`) !== undefined;
  /** The wildcard of the closest existing name at or above `name`. Wildcards of names above that one don't count. */
  function wildcardFor(name: string): string {
    let labels = name.split('.');
    while (labels.length > 1 && !exists(labels.join('.'))) labels = labels.slice(1);
    return ['*', ...labels].join('.');
  }
  return (host) => {
    let name = host.toLowerCase();
    for (let alias = 0; alias < MAX_ALIASES; alias += 1) {
      const records = recordsOf.all(exists(name) ? name : wildcardFor(name)).map((found) => row.parse(found));
      const addresses = records.filter(({ type }) => type === 'A' || type === 'AAAA');
      const address = addresses.find(({ content }) => content !== DISCARDED) ?? addresses[0];
      if (address !== undefined) return address.content;
      const target = records.find(({ type }) => type === 'CNAME');
      if (target === undefined) return null;
      name = target.content.toLowerCase().replace(/\.$/, '');
    }
    return null;
  };
}
