import type { ProviderOptions } from '../../embedded/issuer/provider.ts';
import {
  AUDIENCE,
  DEMO_OWNER,
  DEMO_VIEWER,
  issuerOf,
  LOGIN_CLIENT,
  OPERATOR,
  signingKeyOf,
} from '../instance/issuer.ts';
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
    accounts: [
      { subject: DEMO_OWNER, name: 'Demo owner', description: 'may do everything with the demo client' },
      { subject: DEMO_VIEWER, name: 'Demo viewer', description: 'may only read' },
      { subject: OPERATOR, name: 'Operator', description: 'manages clients and the instance' },
    ],
  };
}
