import { createPrivateKey } from 'node:crypto';
import type { ContainerSpec } from '../../../../sites/manifest/containers.ts';
import type { Secret } from '../../../../sites/manifest/secrets.ts';

const REPLACEMENT = '[secret]';

/** Only this many characters of a text are shown, or searched for a known fault. */
export const LONGEST_READ = 4_096;
/** A shorter line of a key isn't replaced: it may also be a part of other words. */
const SHORTEST_LINE = 8;

type Secrets = Pick<ContainerSpec, 'config' | 'serviceAccountKey'>;

/**
 * Replaces a container's secrets in the first `LONGEST_READ` characters of its output, and drops the rest. Secrets are
 * the encoded and the decoded text of the CONTAINER_CONFIG and its `auth`, each also percent-encoded, and each line of
 * a service account's private key. Throws if that key can't be read: then nothing may be shown.
 */
export function redact({ config, serviceAccountKey }: Secrets, text: string): string {
  // The longest first: one secret may contain another. In one pass: a replacement must not be searched for secrets.
  const secrets = [...new Set([...configSecrets(config), ...keyLines(serviceAccountKey)])].toSorted(
    (a, b) => b.length - a.length,
  );
  const [longest] = secrets;
  if (longest === undefined) return text.slice(0, LONGEST_READ);
  let shown = '';
  let end = 0;
  // A secret that begins before the cut must be found whole.
  const searched = text.slice(0, LONGEST_READ + longest.length);
  for (const { 0: found, index } of searched.matchAll(new RegExp(secrets.map(escaped).join('|'), 'g'))) {
    if (index >= LONGEST_READ) break;
    shown += searched.slice(end, index) + REPLACEMENT;
    end = index + found.length;
  }
  return shown + searched.slice(end, LONGEST_READ);
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
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

/**
 * The key's lines in each form in which output may show it: as stored (perhaps wrapped by hand), and as a program
 * prints the key that it has parsed (PKCS#8 or PKCS#1). JSON escapes the breaks between the lines, but not the lines.
 */
function keyLines(key: Secret | undefined): string[] {
  if (key === undefined) return [];
  const { private_key: pem } = JSON.parse(key.reveal()) as { private_key: string }; // checked by the manifest's reader
  const read = createPrivateKey(pem);
  return [pem, ...(['pkcs8', 'pkcs1'] as const).map((type) => String(read.export({ type, format: 'pem' })))]
    .flatMap((form) => form.split(/\r?\n/))
    .map((line) => line.trim())
    .filter((line) => line.length >= SHORTEST_LINE && !line.startsWith('-----'));
}
