import { z } from 'zod';
import type { CloudflareWorld } from './world.ts';

const total = z.object({ total: z.number() });
const batch = z.object({ deletes: z.array(z.unknown()), posts: z.array(z.unknown()) });

/** The zone refuses records beyond `limit`, with Cloudflare's error. */
export function limitRecords({ emulator, faulty }: CloudflareWorld, limit: number): void {
  const count = () => total.parse(emulator.db.prepare('SELECT count(*) AS total FROM records').get()).total;
  faulty.plan(
    { kind: 'refuse', status: 400, body: refusal(81_045, 'Record quota exceeded.') },
    (_method, path, body) => {
      if (!path.endsWith('/dns_records/batch')) return false;
      const { deletes, posts } = batch.parse(JSON.parse(body));
      return posts.length > 0 && count() - deletes.length + posts.length > limit;
    },
    Number.POSITIVE_INFINITY,
  );
}

/** The zone refuses every further Workers route, by default with a code that Cloudflare doesn't document. */
export function refuseRoutes({ faulty }: CloudflareWorld, code = 10_999): void {
  faulty.plan(
    { kind: 'refuse', status: 400, body: refusal(code, 'Route limit reached.') },
    (method, path) => method === 'POST' && path.endsWith('/workers/routes'),
    Number.POSITIVE_INFINITY,
  );
}

function refusal(code: number, message: string): string {
  return JSON.stringify({ success: false, errors: [{ code, message }], messages: [], result: null });
}
