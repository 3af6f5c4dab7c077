import { hash } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { JWK } from 'jose';
import Provider, { type Configuration } from 'oidc-provider';
import { memoryAdapter } from './adapter.ts';
import { type Account, loginPage, logoutPage, messagePage, PAGE_POLICY } from './pages.ts';

export interface ProviderOptions {
  /** The issuer: the URL at which it listens. */
  readonly url: string;
  /** A private ES256 key. It signs everything. */
  readonly signingKey: JWK;
  /** The audience of tokens for the API. */
  readonly audience: string;
  readonly client: {
    readonly id: string;
    readonly secret: string;
    /** The API's own URL, to which logins and logouts return. */
    readonly url: string;
  };
  readonly accounts: readonly Account[];
}

/** The resource (RFC 8707) for which a token of the API is requested. */
const API_RESOURCE = 'urn:tagyard:management';
const SCOPES = 'openid profile email';
const LONGEST_FORM = 1_000;
const SESSION_SECONDS = 86_400;

/**
 * The OpenID provider of an embedded instance, with a login page that has a button for each account. A `login_hint`
 * that is an account's subject has the effect of that account's button, because the person has chosen the account on a
 * page of the client.
 */
export function buildProvider(options: ProviderOptions): RequestListener {
  const provider = new Provider(options.url, configuration(options));
  const serve = provider.callback();
  const { accounts } = options;
  return async (request, response) => {
    if (!/^\/login\/[\w-]+$/.test(request.url ?? '')) return await serve(request, response);
    try {
      // Throws if the login wasn't begun in this browser, or has ended.
      const { params, session } = await provider.interactionDetails(request, response);
      const isChosen = accounts.some(({ subject }) => subject === params.login_hint);
      if (request.method !== 'POST' && !isChosen) return answerPage(response, 200, loginPage(accounts));
      const chosen = isChosen ? params.login_hint : new URLSearchParams(await formOf(request)).get('account');
      const account = accounts.find(({ subject }) => subject === chosen);
      if (account === undefined) return answerPage(response, 400, loginPage(accounts));
      const login = { accountId: account.subject, remember: true };
      const next = await provider.interactionResult(request, response, { login });
      if (session !== undefined && session.accountId !== account.subject) await detach(provider, session.uid);
      response.writeHead(303, { location: next, 'content-length': '0' }).end();
    } catch {
      const text = 'Go back to the application and log in again.';
      answerPage(response, 400, messagePage('This login has ended', text));
    }
  };
}

/** Ends a session's login before another account logs in: otherwise the provider first asks the person to log out. */
async function detach(provider: Provider, uid: string): Promise<void> {
  const session = await provider.Session.findByUid(uid);
  if (session === undefined) return;
  Object.assign(session, { accountId: undefined, authorizations: {} });
  await session.save(SESSION_SECONDS);
}

function configuration({ signingKey, audience, client, accounts }: ProviderOptions): Configuration {
  const base = client.url;
  return {
    adapter: memoryAdapter(),
    jwks: { keys: [{ ...signingKey, use: 'sig' } as NonNullable<Configuration['jwks']>['keys'][number]] },
    clients: [
      {
        client_id: client.id,
        client_secret: client.secret,
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        redirect_uris: [`${base}/session/callback`],
        post_logout_redirect_uris: [`${base}/`],
        backchannel_logout_uri: `${base}/session/backchannel-logout`,
        backchannel_logout_session_required: true,
      },
    ],
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
    cookies: {
      keys: [hash('sha256', `cookies ${client.secret}`)],
      long: { signed: true, httpOnly: true, sameSite: 'lax' },
      short: { signed: true, httpOnly: true, sameSite: 'lax' },
    },
    pkce: { required: () => true },
    routes: { jwks: '/jwks.json' },
    scopes: SCOPES.split(' '),
    claims: { openid: ['sub'], profile: ['name'], email: ['email'] },
    // The names are in the ID token, too, so that a client needs no further request.
    conformIdTokenClaims: false,
    findAccount: (_context, subject) => {
      const account = accounts.find((one) => one.subject === subject);
      if (account === undefined) return undefined;
      const { name } = account;
      return {
        accountId: subject,
        claims: () => ({ sub: subject, name, email: `${subject}@tagyard.localhost` }),
      };
    },
    interactions: { url: (_context, { uid }) => `/login/${uid}` },
    // The only client is the instance's own, so no person is asked to confirm its access.
    loadExistingGrant: async ({ oidc }) => {
      const { client: known, session, provider } = oidc;
      if (known === undefined || session?.accountId === undefined) return undefined;
      const grant = new provider.Grant({ clientId: known.clientId, accountId: session.accountId });
      grant.addOIDCScope(SCOPES);
      grant.addResourceScope(API_RESOURCE, '');
      await grant.save();
      return grant;
    },
    issueRefreshToken: async () => true,
    // The provider's own guard refuses loopback addresses, but its only client listens on one.
    fetch: (url, init) => {
      const { dispatcher: _guard, ...rest }: RequestInit & { dispatcher?: unknown } = init ?? {};
      return fetch(url, rest);
    },
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: async () => ({
          scope: '',
          audience,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: async (context, form) => {
          context.set('content-security-policy', PAGE_POLICY);
          context.body = logoutPage(form);
        },
        postLogoutSuccessSource: async (context) => {
          context.set('content-security-policy', PAGE_POLICY);
          context.body = messagePage('You are logged out', '');
        },
      },
    },
    renderError: async (context, { error, error_description: description }) => {
      context.set('content-security-policy', PAGE_POLICY);
      context.type = 'html';
      context.body = messagePage('This login can’t continue', description ?? error);
    },
    ttl: {
      AccessToken: 3_600,
      AuthorizationCode: 60,
      IdToken: 3_600,
      Interaction: 3_600,
      Session: SESSION_SECONDS,
      Grant: 86_400,
      RefreshToken: 86_400,
    },
  };
}

function answerPage(response: ServerResponse, status: number, html: string): void {
  response
    .writeHead(status, {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy': PAGE_POLICY,
      'referrer-policy': 'no-referrer',
    })
    .end(html);
}

async function formOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk;
    if (text.length > LONGEST_FORM) throw new Error('the form is too large');
  }
  return text;
}
