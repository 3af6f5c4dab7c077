import { type JWTPayload, jwtVerify } from 'jose';
import * as openid from 'openid-client';
import { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import type { LoginSettings } from '../context/context.ts';
import { ManagementProblem } from '../http/errors.ts';
import { createKeySource } from '../http/jwks.ts';
import { loginProblem } from './login-problem.ts';

const SCOPE = 'openid profile email';
const CLOCK_TOLERANCE_SECONDS = 60;
const TIMEOUT_SECONDS = 5;
/** Milliseconds after which the provider's metadata is read again. */
const METADATA_MS = 600_000;
/** Milliseconds for which a provider that answered counts as reachable for a new login. */
const PRESENT_MS = 5_000;
/**
 * The fewest milliseconds between two fetches of keys. They are few because a logout token is sent only once, even if
 * it is signed with a new key.
 */
const KEYS_PAUSE_MS = 1_000;
const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout';

/** What a browser keeps between the start of a login and the provider's answer. */
interface LoginAttempt {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** A verified login. */
export interface ProvenIdentity {
  /** The claims of the ID token. */
  readonly claims: JWTPayload;
  readonly idToken: string;
  readonly refreshToken: string | null;
}

/** A logout token: the provider has ended the login `sid`, or, without one, all logins of the subject. */
const logoutToken = z.object({
  sid: z.string().optional(),
  jti: z.string(),
  iat: z.number(),
  // An ID token has a nonce: it must not pass as a logout token.
  nonce: z.undefined().optional(),
  events: z.object({ [LOGOUT_EVENT]: z.looseObject({}) }),
});

/** The OpenID provider at which people log in (OpenID Connect Core 1.0, RP-initiated and back-channel logout 1.0). */
export class IdentityProvider {
  readonly #login: LoginSettings;
  readonly #clock: Clock;
  #metadata: { readonly value: openid.ServerMetadata; readonly at: number } | null = null;
  #keys: ReturnType<typeof createKeySource> | null = null;

  constructor(login: LoginSettings, clock: Clock) {
    this.#login = login;
    this.#clock = clock;
  }

  /** Begins a login; `hint` names the account to log in. Throws `login_unavailable`. */
  async begin(hint?: string): Promise<{ readonly url: URL; readonly attempt: LoginAttempt }> {
    const attempt = {
      state: openid.randomState(),
      nonce: openid.randomNonce(),
      verifier: openid.randomPKCECodeVerifier(),
    };
    // Checked here, because a browser that is sent to an unreachable provider shows only its own error page.
    await this.#readMetadata({ isPresent: true });
    const url = openid.buildAuthorizationUrl(await this.#configuration(), {
      redirect_uri: this.#at('/session/callback'),
      scope: SCOPE,
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: await openid.calculatePKCECodeChallenge(attempt.verifier),
      code_challenge_method: 'S256',
      // Without `prompt`, the provider could continue a login of another account.
      ...(hint === undefined ? {} : { login_hint: hint, prompt: 'login' }),
    });
    return { url, attempt };
  }

  /** Exchanges the code of the provider's answer. Throws `invalid_login` and `login_unavailable`. */
  async complete(query: string, attempt: LoginAttempt): Promise<ProvenIdentity> {
    const configuration = await this.#configuration();
    const url = new URL(`${this.#at('/session/callback')}?${query}`);
    return await this.#identityFrom(
      openid.authorizationCodeGrant(configuration, url, {
        expectedState: attempt.state,
        expectedNonce: attempt.nonce,
        pkceCodeVerifier: attempt.verifier,
        idTokenExpected: true,
      }),
    );
  }

  /**
   * The identity as it is now; `null`: the provider has ended the login. Throws `invalid_login` and
   * `login_unavailable`.
   */
  async refresh(refreshToken: string): Promise<ProvenIdentity | null> {
    const configuration = await this.#configuration();
    try {
      return await this.#identityFrom(openid.refreshTokenGrant(configuration, refreshToken));
    } catch (error) {
      const cause = error instanceof ManagementProblem ? error.cause : null;
      if (cause instanceof openid.ResponseBodyError && cause.error === 'invalid_grant') return null;
      throw error;
    }
  }

  /** Where the browser ends its login at the provider; `null`: the provider has no such address, or is unreachable. */
  async logoutUrl(idToken: string): Promise<string | null> {
    const configuration = await this.#configuration().catch(() => null);
    if (configuration?.serverMetadata().end_session_endpoint === undefined) return null;
    const parameters = { id_token_hint: idToken, post_logout_redirect_uri: this.#at('/') };
    return openid.buildEndSessionUrl(configuration, parameters).href;
  }

  /** Verifies the provider's logout token. Throws `invalid_request` and `login_unavailable`. */
  async endedBy(token: string): Promise<{ readonly subject?: string; readonly providerSession?: string }> {
    const { issuer, jwks_uri: keysUrl = '' } = (await this.#configuration()).serverMetadata();
    this.#keys ??= createKeySource(new URL(keysUrl), { clock: this.#clock, cooldownMs: KEYS_PAUSE_MS });
    const { payload } = await jwtVerify(token, this.#keys, {
      issuer,
      audience: this.#login.clientId,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      currentDate: this.#clock.date(),
      // An older token could end a login that began after the token was sent.
      maxTokenAge: '2 minutes',
    }).catch((cause: unknown) => {
      const isAboutToken =
        cause instanceof Error && 'code' in cause && /^ERR_J(WT|WS|OSE_N)/.test(String(cause.code));
      throw isAboutToken ? refusedToken(cause) : new ManagementProblem('login_unavailable', { cause });
    });
    const { success, data, error } = logoutToken.safeParse(payload);
    if (!success) throw refusedToken(error);
    const { [this.#login.subjectClaim]: subject } = payload;
    if (typeof subject !== 'string' && data.sid === undefined) {
      throw refusedToken(new Error(`neither sid nor ${this.#login.subjectClaim} is in it`));
    }
    return {
      ...(typeof subject === 'string' ? { subject } : {}),
      ...(data.sid === undefined ? {} : { providerSession: data.sid }),
    };
  }

  async #identityFrom(answer: ReturnType<typeof openid.authorizationCodeGrant>): Promise<ProvenIdentity> {
    const tokens = await answer.catch((cause: unknown) => {
      throw loginProblem(cause);
    });
    return {
      claims: tokens.claims() ?? {},
      idToken: tokens.id_token ?? '',
      refreshToken: tokens.refresh_token ?? null,
    };
  }

  /** A new configuration for each use: it reads the keys again, so that a rotation is known at once. */
  async #configuration(): Promise<openid.Configuration> {
    const { clientId, clientSecret } = this.#login;
    const metadata = await this.#readMetadata();
    const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const authentication =
      clientSecret === null
        ? openid.None()
        : methods.includes('client_secret_basic')
          ? openid.ClientSecretBasic(clientSecret)
          : openid.ClientSecretPost(clientSecret);
    const skew = Math.round((this.#clock.date().getTime() - Date.now()) / 1000);
    const client = { [openid.clockTolerance]: CLOCK_TOLERANCE_SECONDS, [openid.clockSkew]: skew };
    const configuration = new openid.Configuration(metadata, clientId, client, authentication);
    for (const extend of this.#extensions()) extend(configuration);
    // Also verifies the signature of an ID token that comes directly from the provider's token endpoint.
    openid.enableNonRepudiationChecks(configuration);
    configuration.timeout = TIMEOUT_SECONDS;
    return configuration;
  }

  /** `isPresent`: the provider must be reachable. Else an earlier answer is enough. */
  async #readMetadata({ isPresent = false } = {}): Promise<openid.ServerMetadata> {
    const now = this.#clock.now();
    const longest = isPresent ? PRESENT_MS : METADATA_MS;
    if (this.#metadata !== null && now - this.#metadata.at < longest) return this.#metadata.value;
    const { issuer, clientId } = this.#login;
    try {
      const options = { execute: this.#extensions(), timeout: TIMEOUT_SECONDS };
      const found = await openid.discovery(new URL(issuer), clientId, undefined, openid.None(), options);
      this.#metadata = { value: found.serverMetadata(), at: now };
    } catch (cause) {
      if (isPresent || this.#metadata === null) throw new ManagementProblem('login_unavailable', { cause });
    }
    return this.#metadata.value;
  }

  /** Permits plain HTTP for an `http:` issuer, which settings accept on loopback only. */
  #extensions(): ((configuration: openid.Configuration) => void)[] {
    return this.#login.issuer.startsWith('http:') ? [openid.allowInsecureRequests] : [];
  }

  #at(path: string): string {
    return `${this.#login.publicUrl}${path}`;
  }
}

function refusedToken(cause: unknown): ManagementProblem {
  const detail = 'the logout token is not one of this provider for this client';
  return new ManagementProblem('invalid_request', { detail, cause });
}
