import getPort from 'get-port';
import { exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import type { ProviderOptions } from '../../../sites/local/issuer/provider.ts';
import { serveIssuer } from '../../../sites/local/issuer/server.ts';

export const LOGIN_CLIENT_ID = 'tagyard-management';
const ACCOUNTS = ['owner', 'viewer', 'root'];

export async function newSigningKey(kid: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  return { ...(await exportJWK(privateKey)), kid, alg: 'ES256' };
}

/** The OpenID provider of embedded instances, which can be stopped, and started again with another key. */
export class LoginProvider {
  readonly url: string;
  readonly #options: ProviderOptions;
  #running: { close(): Promise<void> } | null = null;

  private constructor(options: ProviderOptions) {
    this.#options = options;
    this.url = options.url;
  }

  /** `clientUrl`: where its client, management, is. */
  static async start(clientUrl: string, secret = 'login-s3cret'): Promise<LoginProvider> {
    const provider = new LoginProvider({
      url: `http://127.0.0.1:${await getPort({ host: '127.0.0.1' })}`,
      signingKey: await newSigningKey('key-1'),
      audience: 'tagyard',
      client: { id: LOGIN_CLIENT_ID, secret, url: clientUrl },
      accounts: ACCOUNTS.map((subject) => ({ subject, name: `The ${subject}`, description: subject })),
    });
    await provider.restart();
    return provider;
  }

  async restart(signingKey = this.#options.signingKey): Promise<void> {
    await this.stop();
    this.#running = await serveIssuer({ ...this.#options, signingKey });
  }

  /** The private key that it was first started with. */
  async key() {
    return await importJWK(this.#options.signingKey, 'ES256');
  }

  async stop(): Promise<void> {
    await this.#running?.close();
    this.#running = null;
  }
}
