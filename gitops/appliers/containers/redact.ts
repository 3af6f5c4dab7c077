import type { Secret } from '../../manifest/secrets.ts';

const SHOWN = '[secret]';

/**
 * Takes a CONTAINER_CONFIG out of text that the container wrote: as it is, decoded, and its `auth` alone, plain or
 * encoded as in an address.
 */
export function redact(config: Secret, text: string): string {
  const encoded = config.reveal();
  const decoded = Buffer.from(encoded, 'base64').toString();
  const auth = new URLSearchParams(decoded).get('auth') ?? '';
  const asSent = /(?:^|&)auth=([^&]*)/.exec(decoded)?.[1] ?? '';
  return [encoded, decoded, auth, asSent]
    .flatMap((secret) => [secret, encodeURIComponent(secret)])
    .filter((secret) => secret !== '')
    .reduce((shown, secret) => shown.replaceAll(secret, SHOWN), text);
}
