import type { Clock } from '../../base/clock.ts';
import { tokenSubject } from '../../sites/requests/token-subject.ts';
import { hashOf } from '../access/secret-token.ts';
import type { Database } from '../db/database.ts';
import type { Authenticate } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { findToken, markUsed } from './tokens.repository.ts';

/** Milliseconds between two records of a token's use. */
const USED_MS = 60_000;

/** Also accepts service tokens. Any other bearer token is for `authenticate`. */
export function withServiceTokens(
  { db, clock }: { readonly db: Database; readonly clock: Pick<Clock, 'date'> },
  authenticate: Authenticate,
): Authenticate {
  return async (authorization) => {
    const value = /^Bearer +(tgy_[\w-]{43})$/i.exec(authorization ?? '')?.[1];
    if (value === undefined) return await authenticate(authorization);
    const token = await findToken(db, { hash: hashOf(value) });
    if (token === undefined) {
      throw new ManagementProblem('invalid_token', {
        detail: 'there is no such service token, or it was revoked',
      });
    }
    const { id, name, role, expires_at, last_used_at } = token;
    const now = clock.date();
    if (expires_at !== null && expires_at <= now) throw new ManagementProblem('expired_token');
    if (last_used_at === null || now.getTime() - last_used_at.getTime() >= USED_MS)
      await markUsed(db, id, now);
    return { subject: tokenSubject(id), name, email: `token-${id}@users.invalid`, scopes: [role] };
  };
}
