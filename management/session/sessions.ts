import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { Context, LoginSettings } from '../context/context.ts';
import { repeatEvery } from '../context/repeat.ts';
import type { Actor } from '../db/database.ts';
import { type Authenticate, actorOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { seal, unseal } from '../http/sealed.ts';
import type { IdentityProvider, ProvenIdentity } from './identity-provider.ts';
import { newSessionId, sessionHash } from './session-id.ts';
import {
  claimRefresh,
  deleteSession,
  deleteSessionsBefore,
  findSession,
  insertSession,
  type SessionRow,
  touchSession,
  updateIdentity,
} from './sessions.repository.ts';

/** Milliseconds between two records of a session's use. */
const TOUCH_MS = 60_000;
/** Milliseconds after which the identity is refreshed at the provider. */
const REFRESH_MS = 900_000;
/** Milliseconds for which an open event stream's session counts as valid without another query. */
const STREAM_MS = 5_000;

/** The scheme by which the API names a session to itself. No request may send it. */
export const SESSION_SCHEME = 'Session ';

const tokens = z.object({ idToken: z.string(), refreshToken: z.string().nullable() });

const sealedBy = (id: string) => ({ secret: id, purpose: 'session tokens' }) as const;

type Parts = Pick<Context, 'db' | 'clock' | 'log'>;

/** People's sessions in the database. */
export class Sessions {
  readonly #parts: Parts;
  readonly #login: LoginSettings;
  readonly #provider: IdentityProvider;
  readonly #valid = new LRUCache<string, Actor>({ max: 10_000, ttl: STREAM_MS });

  constructor(parts: Parts, login: LoginSettings, provider: IdentityProvider) {
    this.#parts = parts;
    this.#login = login;
    this.#provider = provider;
  }

  /** Opens a session for a verified login. Returns its id. */
  async open({ claims, ...held }: ProvenIdentity): Promise<string> {
    const id = newSessionId();
    await insertSession(this.#parts.db, {
      idHash: sessionHash(id),
      actor: actorOf(claims, this.#login.subjectClaim),
      providerSession: typeof claims.sid === 'string' ? claims.sid : null,
      sealed: seal(sealedBy(id), held),
      at: this.#parts.clock.date(),
    });
    return id;
  }

  /**
   * The session's person. `isUsed: false`: the check doesn't count as use, so the session may become idle. Throws
   * `expired_session` if it has ended.
   */
  async identify(id: string, { isUsed = true } = {}): Promise<Actor> {
    const { db, clock } = this.#parts;
    const row = await findSession(db, sessionHash(id));
    const now = clock.date();
    if (row === undefined || this.#endOf(row) <= now) {
      await this.end(id);
      throw new ManagementProblem('expired_session');
    }
    const { subject } = row;
    if (isUsed && now.getTime() - row.seen_at.getTime() >= TOUCH_MS) await touchSession(db, row.id_hash, now);
    const isOld = now.getTime() - row.refreshed_at.getTime() >= REFRESH_MS;
    const { name, email } = isOld ? await this.#refresh(id, row, now) : row;
    const actor = { subject, name, email };
    this.#valid.set(id, actor);
    return actor;
  }

  /** When the session ends if it isn't used until then. Throws `expired_session`. */
  async endsAt(id: string): Promise<Date> {
    const row = await findSession(this.#parts.db, sessionHash(id));
    if (row === undefined) throw new ManagementProblem('expired_session');
    return this.#endOf(row);
  }

  /** Ends the session. Returns the address that ends the browser's login at the provider; `null`: none is known. */
  async logOut(id: string): Promise<string | null> {
    const row = await findSession(this.#parts.db, sessionHash(id));
    await this.end(id);
    return row === undefined
      ? null
      : await this.#provider.logoutUrl(tokens.parse(unseal(sealedBy(id), row.sealed)).idToken);
  }

  async end(id: string): Promise<void> {
    this.#valid.delete(id);
    await deleteSession(this.#parts.db, sessionHash(id));
  }

  /**
   * Like `authenticate`, but also accepts sessions, under a scheme of their own. Event streams check their
   * callers again and again this way.
   */
  accept(authenticate: Authenticate): Authenticate {
    return async (authorization) => {
      if (!authorization?.startsWith(SESSION_SCHEME)) return await authenticate(authorization);
      const id = authorization.slice(SESSION_SCHEME.length);
      return this.#valid.get(id) ?? (await this.identify(id, { isUsed: false }));
    };
  }

  /** Deletes sessions that have ended: now, and every hour until the signal. */
  async keepForgetting(signal: AbortSignal): Promise<void> {
    const { db, clock, log } = this.#parts;
    const forget = async () => {
      const ago = (seconds: number) => new Date(clock.date().getTime() - seconds * 1000);
      await deleteSessionsBefore(db, ago(this.#login.absoluteSeconds), ago(this.#login.idleSeconds)).catch(
        (err: unknown) => log.error({ err }, 'ended sessions can’t be deleted'),
      );
    };
    await repeatEvery(forget, signal);
  }

  #endOf({ created_at: created, seen_at: seen }: SessionRow): Date {
    const { absoluteSeconds, idleSeconds } = this.#login;
    return new Date(
      Math.min(created.getTime() + absoluteSeconds * 1000, seen.getTime() + idleSeconds * 1000),
    );
  }

  /**
   * The identity as the provider has it now. It stays as it is while the provider is unreachable or its answer isn't
   * valid. Throws `expired_session` if the provider has ended the login.
   */
  async #refresh(id: string, row: SessionRow, now: Date): Promise<Pick<Actor, 'name' | 'email'>> {
    const { db, log } = this.#parts;
    const held = tokens.parse(unseal(sealedBy(id), row.sealed));
    if (held.refreshToken === null || !(await claimRefresh(db, row, now))) return row;
    let fresh: ProvenIdentity | null;
    try {
      fresh = await this.#provider.refresh(held.refreshToken);
    } catch (err) {
      if (!(err instanceof ManagementProblem)) throw err;
      log.warn({ err }, 'an identity can’t be refreshed');
      return row;
    }
    // A provider need not send another ID token.
    const actor = fresh?.claims.sub === undefined ? row : actorOf(fresh.claims, this.#login.subjectClaim);
    if (fresh === null || actor.subject !== row.subject) {
      await this.end(id);
      throw new ManagementProblem('expired_session');
    }
    const sealed = seal(sealedBy(id), {
      idToken: fresh.idToken || held.idToken,
      refreshToken: fresh.refreshToken ?? held.refreshToken,
    });
    await updateIdentity(db, row.id_hash, { name: actor.name, email: actor.email, sealed });
    return actor;
  }
}
