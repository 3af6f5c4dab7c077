import type { ProviderOptions } from '../../../sites/local/issuer/provider.ts';
import { AUDIENCE, issuerOf, LOGIN_CLIENT, signingKeyOf } from '../instance/issuer.ts';
import { LOGIN_ACCOUNTS } from './accounts.ts';
import type { Setup } from './parts.ts';

/** The instance's OpenID provider: its only client is management, its accounts are the demo's. */
export function loginProvider({ instance, ports }: Setup): ProviderOptions {
  return {
    url: issuerOf(instance),
    signingKey: signingKeyOf(instance),
    audience: AUDIENCE,
    client: {
      id: LOGIN_CLIENT,
      secret: instance.loginSecret,
      url: `http://127.0.0.1:${ports.management}`,
    },
    accounts: LOGIN_ACCOUNTS,
  };
}
