import type { FastifyRequest } from 'fastify';
import { equalSecrets } from '../../base/http/equal-secrets.ts';
import type { Context, LoginSettings } from '../context/context.ts';
import type { Authenticate } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { SessionCookies } from './cookies.ts';
import { IdentityProvider } from './identity-provider.ts';
import { csrfTokenOf } from './session-id.ts';
import { SESSION_SCHEME, Sessions } from './sessions.ts';

const READS: readonly string[] = ['GET', 'HEAD', 'OPTIONS'];

declare module 'fastify' {
  interface FastifyRequest {
    /** The id of the session by which the caller is known; `null`: by a token. */
    sessionId: string | null;
  }
}

interface LoginParts {
  readonly settings: LoginSettings;
  readonly provider: IdentityProvider;
  readonly sessions: Sessions;
  readonly cookies: SessionCookies;
}

/** People's logins in browsers. Without settings this installation has none, and knows callers by tokens only. */
export class Login {
  readonly #parts: LoginParts | null;

  constructor({ settings: { login: settings }, ...context }: Omit<Context, 'authenticate' | 'room'>) {
    if (settings === null) {
      this.#parts = null;
      return;
    }
    const provider = new IdentityProvider(settings, context.clock);
    const sessions = new Sessions(context, settings, provider);
    this.#parts = { settings, provider, sessions, cookies: new SessionCookies(settings.publicUrl) };
  }

  get isPossible(): boolean {
    return this.#parts !== null;
  }

  /** Throws `no_login`. */
  demand(): LoginParts {
    if (this.#parts === null) throw new ManagementProblem('no_login');
    return this.#parts;
  }

  accept(authenticate: Authenticate): Authenticate {
    return this.#parts === null ? authenticate : this.#parts.sessions.accept(authenticate);
  }

  /**
   * A hook before the token check: a session's cookie identifies the caller of a request without a token. Throws
   * `cross_site` if the cookie comes with a read by another origin's page, or a change without proof of this origin.
   */
  async recognise(request: FastifyRequest): Promise<void> {
    const { headers, method } = request;
    if (headers.authorization !== undefined) {
      // Only the API itself uses this scheme: a request's own header with it is dropped.
      if (headers.authorization.startsWith(SESSION_SCHEME)) delete headers.authorization;
      return;
    }
    const id = this.#parts?.cookies.read(request, 'session') ?? null;
    if (this.#parts === null || id === null) return;
    const site = headers['sec-fetch-site'];
    const isOwn = site === 'same-origin';
    if (
      READS.includes(method)
        ? !(isOwn || site === undefined || site === 'none')
        : !(isOwn || hasToken(request, id))
    ) {
      throw new ManagementProblem('cross_site');
    }
    await this.#parts.sessions.identify(id);
    request.sessionId = id;
    headers.authorization = `${SESSION_SCHEME}${id}`;
  }

  async follow(signal: AbortSignal): Promise<void> {
    await this.#parts?.sessions.keepForgetting(signal);
  }
}

function hasToken({ headers }: FastifyRequest, id: string): boolean {
  const given = headers['x-csrf-token'];
  return typeof given === 'string' && equalSecrets(given, csrfTokenOf(id));
}
