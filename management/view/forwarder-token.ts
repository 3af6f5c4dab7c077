import { createHmac, hash } from 'node:crypto';

/** What identifies a token. Each rotation makes a new token with the next generation number. */
interface TokenOf {
  /** Id of the container. */
  readonly container: string;
  readonly domain: string;
  readonly generation: number;
}

/** The token by which the edge recognizes a domain's own server. Computed when it is shown, and stored nowhere. */
export function forwarderToken(key: string, { container, domain, generation }: TokenOf): string {
  const mac = createHmac('sha256', key).update(`${container}\n${domain}\n${generation}`);
  return `ft_${mac.digest('base64url')}`;
}

/** SHA-256 in hex: all that git and the edge have of a token. */
export function forwarderTokenHash(token: string): string {
  return hash('sha256', token, 'hex');
}
