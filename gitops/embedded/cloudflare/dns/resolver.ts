import type { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';

const row = z.object({ type: z.string(), content: z.string(), body: z.string() });
const proxiedFlag = z.object({ proxied: z.boolean() });
/** A longer chain of aliases is taken for a loop. */
const MAX_ALIASES = 8;

/**
 * Resolves a name to an address by the zones in `db`, or to `null`. Proxied records are skipped: they lead to the
 * worker, which doesn't fetch from itself.
 */
export function zoneResolver(db: DatabaseSync): (host: string) => string | null {
  const recordsOf = db.prepare(
    'SELECT type, content, body FROM records WHERE name = ? ORDER BY type, content',
  );
  return (host) => {
    let name = host.toLowerCase();
    for (let alias = 0; alias < MAX_ALIASES; alias += 1) {
      const records = recordsOf
        .all(name)
        .map((found) => row.parse(found))
        .filter(({ body }) => !proxiedFlag.parse(JSON.parse(body)).proxied);
      const address = records.find(({ type }) => type === 'A' || type === 'AAAA');
      if (address !== undefined) return address.content;
      const target = records.find(({ type }) => type === 'CNAME');
      if (target === undefined) return null;
      name = target.content.toLowerCase().replace(/\.$/, '');
    }
    return null;
  };
}
