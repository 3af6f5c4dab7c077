import getPort from 'get-port';
import type { LoginSettings } from '../../../management/context/context.ts';
import { World } from '../management/world.ts';
import { movableClock } from '../movable-clock.ts';
import { KEYCLOAK_AUDIENCE, KEYCLOAK_CLIENT, type Keycloak, PASSWORD } from './keycloak.ts';
import { type Visit, Visitor } from './visitor.ts';

const MINUTE = 60_000;

/** A management API whose people log in at a realm of Keycloak, and whose programs get their tokens there. */
export class KeycloakStage {
  readonly world: World;
  readonly url: string;
  readonly realm: string;
  readonly clock: ReturnType<typeof movableClock>;
  readonly #keycloak: Keycloak;

  private constructor(keycloak: Keycloak, parts: Pick<KeycloakStage, 'world' | 'url' | 'realm' | 'clock'>) {
    this.#keycloak = keycloak;
    this.world = parts.world;
    this.url = parts.url;
    this.realm = parts.realm;
    this.clock = parts.clock;
  }

  /** Makes the realm. */
  static async open(
    keycloak: Keycloak,
    realm: string,
    settings: Partial<LoginSettings> = {},
  ): Promise<KeycloakStage> {
    const port = await getPort({ host: '127.0.0.1' });
    const url = `http://127.0.0.1:${port}`;
    const issuer = await keycloak.realm(realm, url);
    const clock = movableClock();
    const login: LoginSettings = {
      issuer,
      clientId: KEYCLOAK_CLIENT.id,
      clientSecret: KEYCLOAK_CLIENT.secret,
      publicUrl: url,
      subjectClaim: 'sub',
      hints: [],
      idleSeconds: 1_800,
      absoluteSeconds: 8 * 3_600,
      ...settings,
    };
    const world = await World.open({
      clock,
      logLevel: 'warn',
      settings: { login },
      tokens: {
        jwksUrl: `${issuer}/protocol/openid-connect/certs`,
        issuer,
        audience: KEYCLOAK_AUDIENCE,
        jwks: { cooldownMs: 200 },
      },
    });
    await world.management?.app.listen({ host: '127.0.0.1', port });
    return new KeycloakStage(keycloak, { world, url, realm, clock });
  }

  /** Begins a login, and follows redirects to the provider's page or, with `until`, an address that matches. */
  async begin(visitor: Visitor, until?: RegExp): Promise<Visit> {
    return await visitor.visit(`${this.url}/session/login?returnTo=/session`, until);
  }

  /** Types name and password into the provider's page. */
  async logIn(visitor: Visitor, username = 'ada', until?: RegExp): Promise<Visit> {
    const page = await this.begin(visitor);
    return await visitor.submit(page, { username, password: PASSWORD }, until);
  }

  /** A new visitor with a session. */
  async person(username = 'ada'): Promise<Visitor> {
    const visitor = new Visitor();
    const { url, response, text } = await this.logIn(visitor, username);
    if (response.status !== 200 || url.pathname !== '/session') throw new Error(`no session: ${text}`);
    return visitor;
  }

  /** The subject of the visitor's session, or the code of the problem. */
  async subjectOf(visitor: Visitor): Promise<string> {
    const answer = await visitor.request(`${this.url}/session`);
    const body = JSON.parse(await answer.text());
    return body.subject ?? body.code;
  }

  /** Lets the time pass after which the next request of each session refreshes its identity. */
  async passRefreshTime(): Promise<void> {
    const refreshed_at = new Date(this.clock.date().getTime() - 16 * MINUTE);
    await this.world.owner.updateTable('sessions').set({ refreshed_at }).execute();
  }

  async idOf(username: string): Promise<string> {
    const [user] = await this.#keycloak.admin(
      'GET',
      `/realms/${this.realm}/users?username=${username}&exact=true`,
    );
    return user.id;
  }

  /** Ends all sessions of the account at the provider, as an administrator. */
  async endAll(username: string): Promise<void> {
    await this.#keycloak.admin('POST', `/realms/${this.realm}/users/${await this.idOf(username)}/logout`);
  }

  /** Changes an account at the provider. */
  async change(username: string, change: object): Promise<void> {
    await this.#keycloak.admin('PUT', `/realms/${this.realm}/users/${await this.idOf(username)}`, change);
  }

  /** Sets for how many seconds new tokens are valid. */
  async setLifespan(accessTokenLifespan: number): Promise<void> {
    await this.#keycloak.admin('PUT', `/realms/${this.realm}`, { accessTokenLifespan });
  }

  /** Replaces the secret of the OpenID client by which people log in. */
  async setSecret(secret: string): Promise<void> {
    const clients = `/realms/${this.realm}/clients`;
    const [client] = await this.#keycloak.admin('GET', `${clients}?clientId=${KEYCLOAK_CLIENT.id}`);
    await this.#keycloak.admin('PUT', `${clients}/${client.id}`, { ...client, secret });
  }

  /** Gives the realm another key to sign with, and removes all older ones. */
  async rotateKey(): Promise<void> {
    const components = `/realms/${this.realm}/components`;
    const type = 'org.keycloak.keys.KeyProvider';
    const keys = await this.#keycloak.admin('GET', `${components}?type=${type}`);
    await this.#keycloak.admin('POST', components, {
      name: `rsa-${Date.now()}`,
      providerId: 'rsa-generated',
      providerType: type,
      config: { priority: ['200'], algorithm: ['RS256'], keySize: ['2048'] },
    });
    for (const { id, providerId } of keys) {
      if (providerId === 'rsa-generated') await this.#keycloak.admin('DELETE', `${components}/${id}`);
    }
  }

  /** A token for the API, as a program gets it. */
  async bearer(client = 'dashboard', realm = this.realm): Promise<string> {
    const form = { client_id: client, username: 'ada', password: PASSWORD };
    return (await this.#keycloak.tokens(realm, form)).access_token ?? '';
  }

  /** The status and the code of a call by a token. */
  async call(token: string): Promise<readonly [status: number, code: string | undefined]> {
    const { status, body } = await this.world.call('GET', '/server-containers', { token });
    return [status, body.code];
  }

  async close(): Promise<void> {
    await this.world.close();
  }
}
