import 'reflect-metadata';
import * as x509 from '@peculiar/x509';

const DAY_MS = 86_400_000;
const EC = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const rsa = (bits: number) => ({
  name: 'RSASSA-PKCS1-v1_5',
  hash: 'SHA-256',
  publicExponent: Uint8Array.from([1, 0, 1]),
  modulusLength: bits,
});

/**
 * A self-signed certificate with its key, in the form in which gateways get them. `rsaBits`: the length of an RSA key;
 * default: a key of P-256.
 */
export async function selfSigned(
  names: readonly string[],
  { days = 30, rsaBits }: { readonly days?: number; readonly rsaBits?: number } = {},
) {
  const algorithm = rsaBits === undefined ? EC : rsa(rsaBits);
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=test',
    keys,
    signingAlgorithm: algorithm,
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + days * DAY_MS),
    extensions: [
      new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: 'dns' as const, value }))),
    ],
  });
  const key = x509.PemConverter.encode(
    await crypto.subtle.exportKey('pkcs8', keys.privateKey),
    'PRIVATE KEY',
  );
  return { kind: 'certificate', cert: certificate.toString('pem'), key } as const;
}
