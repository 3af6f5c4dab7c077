import type { Secret } from '../../manifest/secrets.ts';

const REPLACEMENT = '[secret]';

/**
 * Replaces a CONTAINER_CONFIG in a container's output: the encoded text, the decoded text, and its `auth` alone, each
 * also percent-encoded.
 */
export function redact(config: Secret, text: string): string {
  const encoded = config.reveal();
  const decoded = Buffer.from(encoded, 'base64').toString();
  const auth = new URLSearchParams(decoded).get('auth') ?? '';
  const asSent = /(?:^|&)auth=([^&]*)/.exec(decoded)?.[1] ?? '';
  return [encoded, decoded, auth, asSent]
    .flatMap((secret) => [secret, encodeURIComponent(secret)])
    .filter((secret) => secret !== '')
    .reduce((shown, secret) => shown.replaceAll(secret, REPLACEMENT), text);
}
