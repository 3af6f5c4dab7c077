import { createHmac, type Hmac } from 'node:crypto';
import { canonicalJson } from '../../base/canonical-json.ts';
import type { Database } from '../db/database.ts';

/** What is derived from the installation's key. */
type Purpose = 'planned value' | 'plan' | 'secret';

/** Returns digests (32 bytes) that nobody without the installation's key can compute. */
export async function installationMac(db: Database): Promise<(purpose: Purpose, of: unknown) => Hmac> {
  const { key } = await db.selectFrom('installation_key').select('key').executeTakeFirstOrThrow();
  return (purpose, of) => createHmac('sha256', key).update(canonicalJson([purpose, of]));
}
