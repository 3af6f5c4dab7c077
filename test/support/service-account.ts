import { generateKeyPairSync } from 'node:crypto';

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const PEM = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

/** A line of the private key, which must be nowhere but in the container's file. */
export const PRIVATE_LINE = PEM.split('\n')[1] ?? '';
export const FACTS = {
  clientEmail: 'tag-server@acme-analytics.iam.gserviceaccount.com',
  projectId: 'acme-analytics',
  keyId: '0123456789abcdef0123456789abcdef01234567',
};

/** A key as Google Cloud's console downloads it. */
export function serviceAccountJson(extra: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    type: 'service_account',
    project_id: FACTS.projectId,
    private_key_id: FACTS.keyId,
    private_key: PEM,
    client_email: FACTS.clientEmail,
    client_id: '100000000000000000000',
    auth_uri: 'https://accounts.google.com/o/oauth2/auth',
    token_uri: 'https://oauth2.googleapis.com/token',
    auth_provider_x509_cert_url: 'https://www.googleapis.com/oauth2/v1/certs',
    client_x509_cert_url: 'https://www.googleapis.com/robot/v1/metadata/x509/tag-server',
    universe_domain: 'googleapis.com',
    ...extra,
  };
}
