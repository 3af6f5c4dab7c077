import type { ContainerSpec } from '../../manifest/containers.ts';
import type { Secret } from '../../manifest/secrets.ts';

const REPLACEMENT = '[secret]';

/**
 * Replaces a container's secrets in its output. Of the CONTAINER_CONFIG: the encoded text, the decoded text, and its
 * `auth` alone, each also percent-encoded. Of a service account's key: each line of the private key.
 */
export function redact(
  { config, serviceAccountKey }: Pick<ContainerSpec, 'config' | 'serviceAccountKey'>,
  text: string,
): string {
  return [...configSecrets(config), ...keyLines(serviceAccountKey)].reduce(
    (shown, secret) => shown.replaceAll(secret, REPLACEMENT),
    text,
  );
}

function configSecrets(config: Secret): string[] {
  const encoded = config.reveal();
  const decoded = Buffer.from(encoded, 'base64').toString();
  const auth = new URLSearchParams(decoded).get('auth') ?? '';
  const asSent = /(?:^|&)auth=([^&]*)/.exec(decoded)?.[1] ?? '';
  return [encoded, decoded, auth, asSent]
    .flatMap((secret) => [secret, encodeURIComponent(secret)])
    .filter((secret) => secret !== '');
}

/** JSON escapes the breaks between the lines, but not the lines. */
function keyLines(key: Secret | undefined): string[] {
  if (key === undefined) return [];
  const { private_key: pem } = JSON.parse(key.reveal()) as { private_key: string }; // the manifest's reader has judged it
  return pem.split('\n').filter((line) => line !== '' && !line.startsWith('-----'));
}
