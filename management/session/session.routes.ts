import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { isOperator } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { answerFailedLogin } from './failed-page.ts';
import type { Login } from './login.ts';
import { attemptCookie, loggedOut, loginQuery, logoutForm, sessionView } from './session.schema.ts';
import { csrfTokenOf } from './session-id.ts';
import { deleteSessionsOf } from './sessions.repository.ts';

const ATTEMPT_SECONDS = 600;
/** Seconds after which a login can be tried again while the provider is unreachable. */
const RETRY_SECONDS = 5;
const HIDDEN = { schema: { hide: true } };

/** The caller's own session. */
export function ownSessionRoutes({ settings }: Context, login: Login): FastifyPluginAsyncZod {
  const security = [{ session: [] }];
  return async (app) => {
    app.get(
      '/session',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'getSession',
          summary: 'Read the session of this browser',
          tags: ['session'],
          security,
          response: { 200: sessionView, ...problems('no_login') },
        },
      },
      async (request) => {
        const { sessions } = login.demand();
        const id = demandSession(request);
        const actor = callerOf(request);
        return {
          ...actor,
          isOperator: isOperator({ settings }, actor),
          csrfToken: csrfTokenOf(id),
          endsAt: (await sessions.endsAt(id)).toISOString(),
        };
      },
    );

    app.post(
      '/session/logout',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'endSession',
          summary: 'End the session of this browser',
          description: 'To end the login at the provider, too, the browser opens `logoutUrl`.',
          tags: ['session'],
          security,
          response: { 200: loggedOut, ...problems('no_login') },
        },
      },
      async (request, reply) => {
        const { sessions, cookies } = login.demand();
        const logoutUrl = await sessions.logOut(demandSession(request));
        cookies.clear(reply, 'session');
        return { logoutUrl };
      },
    );
  };
}

function demandSession({ sessionId }: FastifyRequest): string {
  if (sessionId !== null) return sessionId;
  throw new ManagementProblem('expired_session', {
    detail: 'the request has a token, but no session; send it with a session’s cookie and without the token',
  });
}

/** What browsers and the provider request to log a person in and out: no caller is known yet. */
export function loginRoutes({ db }: Context, login: Login): FastifyPluginAsyncZod {
  return async (app) => {
    app.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: 16_384 },
      async (_request: FastifyRequest, body: string) => Object.fromEntries(new URLSearchParams(body)),
    );

    app.get('/session/logins', HIDDEN, async (request) => {
      if (!login.isPossible) return { isPossible: false, hasSession: false, accounts: [] };
      const { cookies, settings } = login.demand();
      const hasSession = cookies.read(request, 'session') !== null;
      return { isPossible: true, hasSession, accounts: settings.hints };
    });

    app.get('/session/login', { schema: { hide: true, querystring: loginQuery } }, async (request, reply) => {
      const { provider, cookies, settings } = login.demand();
      const { returnTo } = request.query;
      // Only a page of this origin chooses the account: a link of another site must not log its visitors in.
      const isOwn = request.headers['sec-fetch-site'] === 'same-origin';
      const known = settings.hints.find(({ hint }) => isOwn && hint === request.query.hint);
      try {
        const { url, attempt } = await orRetry(reply, provider.begin(known?.hint));
        const value = Buffer.from(JSON.stringify({ ...attempt, returnTo })).toString('base64url');
        cookies.set(reply, 'login', { value, seconds: ATTEMPT_SECONDS });
        return reply.redirect(url.href, 302);
      } catch (error) {
        return answerFailedLogin(error, { request, reply, returnTo });
      }
    });

    app.get('/session/callback', HIDDEN, async (request, reply) => {
      const { provider, sessions, cookies, settings } = login.demand();
      let returnTo = '/';
      try {
        const { returnTo: begunAt, ...attempt } = attemptOf(cookies.read(request, 'login'));
        returnTo = begunAt;
        const query = request.url.slice(request.url.indexOf('?') + 1);
        const identity = await orRetry(reply, provider.complete(query, attempt));
        const before = cookies.read(request, 'session');
        if (before !== null) await sessions.end(before);
        cookies.clear(reply, 'login');
        const value = await sessions.open(identity);
        cookies.set(reply, 'session', { value, seconds: settings.absoluteSeconds });
        return reply.redirect(returnTo, 303);
      } catch (error) {
        return answerFailedLogin(error, { request, reply, returnTo });
      }
    });

    const options = { schema: { hide: true, body: logoutForm } };
    app.post('/session/backchannel-logout', options, async (request, reply) => {
      const { provider } = login.demand();
      await deleteSessionsOf(db, await orRetry(reply, provider.endedBy(request.body.logout_token)));
      return reply.status(200).send({});
    });
  };
}

/** Throws `invalid_login`. */
function attemptOf(cookie: string | null) {
  if (cookie === null) {
    const cause = new Error(
      'the request has no cookie of a login that has begun; it may have expired, or have been used',
    );
    throw new ManagementProblem('invalid_login', { cause });
  }
  try {
    return attemptCookie.parse(JSON.parse(Buffer.from(cookie, 'base64url').toString('utf8')));
  } catch (cause) {
    throw new ManagementProblem('invalid_login', { cause });
  }
}

/** Says when to try again, if the provider is unreachable. */
async function orRetry<Value>(reply: FastifyReply, work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ManagementProblem && error.code === 'login_unavailable') {
      reply.header('retry-after', RETRY_SECONDS);
    }
    throw error;
  }
}
