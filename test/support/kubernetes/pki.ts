import 'reflect-metadata';
import type { webcrypto } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';

const CURVE = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 86_400_000;

/** Who a certificate is for: a subject in RFC 4514 form, and the names under which it serves. */
interface Holder {
  readonly subject: string;
  readonly dns?: readonly string[];
  readonly ips?: readonly string[];
}

/** Paths of PEM files. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** The certificate authority of one cluster, in a folder of its own. */
export class Pki {
  readonly #folder: string;
  readonly #keys: webcrypto.CryptoKeyPair;
  readonly #ca: x509.X509Certificate;
  readonly caFile: string;

  private constructor(folder: string, keys: webcrypto.CryptoKeyPair, ca: x509.X509Certificate) {
    this.#folder = folder;
    this.#keys = keys;
    this.#ca = ca;
    this.caFile = join(folder, 'ca.crt');
  }

  static async create(folder: string): Promise<Pki> {
    const keys = await newKeys();
    const ca = await x509.X509CertificateGenerator.createSelfSigned({
      name: 'CN=cluster',
      keys,
      ...lifetime(),
      signingAlgorithm: CURVE,
      extensions: [
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    const pki = new Pki(folder, keys, ca);
    await writeFile(pki.caFile, ca.toString('pem'));
    return pki;
  }

  async issue(name: string, { subject, dns = [], ips = [] }: Holder): Promise<KeyPair> {
    const keys = await newKeys();
    const certificate = await x509.X509CertificateGenerator.create({
      subject,
      issuer: this.#ca.subject,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: CURVE,
      ...lifetime(),
      extensions: [
        new x509.ExtendedKeyUsageExtension([
          x509.ExtendedKeyUsage.serverAuth,
          x509.ExtendedKeyUsage.clientAuth,
        ]),
        new x509.SubjectAlternativeNameExtension([
          ...dns.map((value) => ({ type: 'dns' as const, value })),
          ...ips.map((value) => ({ type: 'ip' as const, value })),
        ]),
      ],
    });
    const paths = { certificate: join(this.#folder, `${name}.crt`), key: join(this.#folder, `${name}.key`) };
    await writeFile(paths.certificate, certificate.toString('pem'));
    await writeFile(paths.key, await pemOf(keys.privateKey), { mode: 0o600 });
    return paths;
  }
}

/** A kubeconfig of one user. */
export function kubeconfigOf(server: string, { caFile }: Pki, { certificate, key }: KeyPair) {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority': caFile } }],
    users: [{ name: 'test', user: { 'client-certificate': certificate, 'client-key': key } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  };
}

const newKeys = () => crypto.subtle.generateKey(CURVE, true, ['sign', 'verify']);

async function pemOf(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}

function lifetime() {
  const now = Date.now();
  return { notBefore: new Date(now - DAY_MS), notAfter: new Date(now + 30 * DAY_MS) };
}
