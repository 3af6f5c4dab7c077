import { createPrivateKey } from 'node:crypto';
import { z } from 'zod';

/** Maximum size of a key's JSON in bytes. Google's have 2,400; one with a 4096-bit key has 4,200. */
const MAX_BYTES = 8_192;

/** What names a key without revealing it. */
export const serviceAccountFacts = z.strictObject({
  clientEmail: z
    .string()
    .max(320)
    .regex(/^[^\s@]+@[^\s@]+$/, 'must be an e-mail address'),
  projectId: z
    .string()
    .max(100)
    .regex(/^[a-z0-9][a-z0-9.:-]*$/, 'must be a project id like acme-analytics'),
  keyId: z
    .string()
    .max(100)
    .regex(/^[A-Za-z0-9_-]+$/, 'must be the id of a key'),
});
export type ServiceAccountFacts = z.output<typeof serviceAccountFacts>;

/** A key that Google's libraries accept, as the text to store; or what is wrong with it. */
type KeyVerdict =
  | { readonly ok: true; readonly text: string; readonly facts: ServiceAccountFacts }
  | { readonly ok: false; readonly member: string; readonly problem: string };

const { clientEmail, projectId, keyId } = serviceAccountFacts.shape;
/** Where the key is exchanged for a token: nothing but Google may get what the key signs. */
const tokenUri = z
  .url()
  .refine((url) => /^https:\/\/[a-z0-9.-]+\.googleapis\.com(?::443)?\//.test(url), 'must be Google’s');

/** Members that Google's libraries read. Others, which might name a file or a command, are dropped. */
const keySchema = z.object({
  type: z.literal('service_account', 'must be service_account'),
  project_id: projectId,
  private_key_id: keyId,
  private_key: z.string().transform((pem, { addIssue }) => {
    const normal = normalKey(pem);
    if (normal === null) addIssue('must be an RSA private key in PEM');
    return normal ?? z.NEVER;
  }),
  client_email: clientEmail,
  client_id: z.string().max(100).optional(),
  auth_uri: z.url().max(500).optional(),
  token_uri: tokenUri.default('https://oauth2.googleapis.com/token'),
  auth_provider_x509_cert_url: z.url().max(500).optional(),
  client_x509_cert_url: z.url().max(500).optional(),
  universe_domain: z.literal('googleapis.com', 'must be googleapis.com').optional(),
});

/**
 * Judges the JSON of a service account's key, as Google Cloud's console downloads it. A problem never quotes a value,
 * because the JSON holds a private key.
 */
export function parseServiceAccount(json: unknown): KeyVerdict {
  if (Buffer.byteLength(JSON.stringify(json) ?? '') > MAX_BYTES) {
    return { ok: false, member: '', problem: `must have at most ${MAX_BYTES} bytes` };
  }
  const parsed = keySchema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const member = String(issue?.path[0] ?? '');
    const isMissing = member !== '' && (json as Record<string, unknown>)[member] === undefined;
    if (member === '') return { ok: false, member, problem: 'must be a JSON object' };
    return { ok: false, member, problem: isMissing ? 'is missing' : (issue?.message ?? 'is not valid') };
  }
  const { data } = parsed;
  const text = `${JSON.stringify(data, null, 2)}\n`;
  const facts = { clientEmail: data.client_email, projectId: data.project_id, keyId: data.private_key_id };
  return { ok: true, text, facts };
}

/** The same for text. */
export function readServiceAccount(text: string): KeyVerdict {
  try {
    return parseServiceAccount(JSON.parse(text));
  } catch {
    return { ok: false, member: '', problem: 'must be a JSON object' };
  }
}

/** The key in PKCS #8, as Google writes it, without the text around it; `null`: it is no RSA key. */
function normalKey(pem: string): string | null {
  try {
    const key = createPrivateKey(pem);
    return key.asymmetricKeyType === 'rsa' ? String(key.export({ type: 'pkcs8', format: 'pem' })) : null;
  } catch {
    return null;
  }
}
