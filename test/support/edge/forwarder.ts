import { createHash } from 'node:crypto';
import type { RegistryDomain } from '../../../plugins/document.ts';

type SameOrigin = NonNullable<RegistryDomain['sameOrigin']>;

/** A forwarder's token; `seed` keeps several apart. */
export function forwarderToken(seed: string): string {
  return `ft_${createHash('sha256').update(seed).digest('base64url')}`;
}

export const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex');

/** A domain's prefix whose forwarder has the token. */
export function prefixed(path: string, token: string, ...older: SameOrigin['tokens']): SameOrigin {
  return { path, tokens: [{ hash: hashOf(token) }, ...older] };
}

/** The headers that a domain's own server sends with a request that it forwards. */
export function stated(token: string, host: string, visitor = '198.51.100.7'): Record<string, string> {
  return {
    'x-tagyard-forwarder-token': token,
    'x-tagyard-host': host,
    'x-tagyard-visitor': visitor,
  };
}
