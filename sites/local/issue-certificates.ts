// Must be loaded before the certificate library.
import 'reflect-metadata';
import { createPrivateKey, createPublicKey, hash, randomBytes, type webcrypto } from 'node:crypto';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';
import { removeFolderAt, writeDurably } from '../../base/durable.ts';

// The library takes much memory: this file is loaded only where a certificate is issued.

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY_MS = 86_400_000;
/** Clocks of containers and hosts may differ a little. */
const BACKDATE_MS = 3_600_000;

/** PEM files: a certificate with its chain, and its private key. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/** A CA's certificate and its key. */
export interface Issuer {
  readonly pem: string;
  readonly key: webcrypto.CryptoKey;
}

/** Issues a server certificate for a host, for `days`, and writes its files. */
export async function issueLeaf(
  paths: CertificateFiles,
  issuer: Issuer,
  { host, now, days }: { readonly host: string; readonly now: Date; readonly days: number },
): Promise<void> {
  const own = new x509.X509Certificate(issuer.pem);
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial(),
    issuer: own.subject,
    // Clients read the name from the extension only. A common name is limited to 64 characters.
    subject: 'O=Tagyard',
    publicKey: keys.publicKey,
    signingKey: issuer.key,
    signingAlgorithm: ALGORITHM,
    ...lifetime(now, days),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: host }]),
      await x509.AuthorityKeyIdentifierExtension.create(own),
    ],
  });
  // The key first: after a crash in between, key and certificate don't match and are replaced.
  await writeDurably(paths.key, await privatePem(keys.privateKey));
  await writeDurably(paths.cert, `${certificate.toString('pem')}\n${issuer.pem}`, 0o644);
}

/** Makes a CA and writes its files. `onlyName`: it can sign only for this name and names under it. */
export async function issueCa(
  directory: string,
  {
    now,
    days,
    onlyName,
    key,
  }: {
    readonly now: Date;
    readonly days: number;
    readonly onlyName?: string | undefined;
    readonly key?: string | undefined;
  },
): Promise<Issuer> {
  const keys = key === undefined ? await newKeys() : await keysOf(key);
  // CAs of one key have one name: whoever trusts one of them accepts what another one has signed.
  const id = key === undefined ? randomBytes(4).toString('hex') : nameOf(key);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: `CN=Tagyard local CA ${id}`,
    keys,
    signingAlgorithm: ALGORITHM,
    ...lifetime(now, days),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ...(onlyName === undefined ? [] : [nameConstraints(onlyName)]),
    ],
  });
  const pem = `${certificate.toString('pem')}\n`;
  await writeDurably(join(directory, 'ca.key'), await privatePem(keys.privateKey));
  const file = join(directory, 'ca.pem');
  await removeFolderAt(file);
  await writeDurably(file, pem, 0o644);
  return { pem, key: keys.privateKey };
}

/** Whether a CA can sign only for this name and names under it. */
export function isLimitedTo(onlyName: string, pem: string): boolean {
  const limit = nameConstraints(onlyName);
  const present = new x509.X509Certificate(pem).getExtension(limit.type);
  return present !== null && Buffer.from(present.value).equals(Buffer.from(limit.value));
}

const NAME_CONSTRAINTS = '2.5.29.30';
const ANY_ADDRESS = [Buffer.alloc(8), Buffer.alloc(32)];

/** Permits one DNS name and those under it, excludes all IPv4 and IPv6 addresses (RFC 5280, 4.2.1.10). */
function nameConstraints(name: string): x509.Extension {
  const subtree = (tag: number, value: Uint8Array) => tlv(0x30, tlv(tag, value));
  const permitted = tlv(0xa0, subtree(0x82, Buffer.from(name, 'ascii')));
  const excluded = tlv(0xa1, ...ANY_ADDRESS.map((address) => subtree(0x87, address)));
  return new x509.Extension(NAME_CONSTRAINTS, true, tlv(0x30, permitted, excluded));
}

/** Tag, length and value in DER (X.690, 8.1.3), for values of at most 65535 octets. */
function tlv(tag: number, ...values: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const value = Buffer.concat(values);
  const { length } = value;
  const octets = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Uint8Array.from([tag, ...octets, ...value]);
}

function newKeys() {
  return crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

async function keysOf(pem: string) {
  const key = createPrivateKey(pem);
  const pkcs8 = key.export({ format: 'der', type: 'pkcs8' });
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' });
  return {
    privateKey: await crypto.subtle.importKey('pkcs8', pkcs8, ALGORITHM, true, ['sign']),
    publicKey: await crypto.subtle.importKey('spki', spki, ALGORITHM, true, ['verify']),
  };
}

function nameOf(pem: string): string {
  return hash('sha256', createPublicKey(pem).export({ format: 'der', type: 'spki' })).slice(0, 8);
}

async function privatePem(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}

/** Positive and unpredictable (RFC 5280, 4.1.2.2). */
function serial(): string {
  return `01${randomBytes(15).toString('hex')}`;
}

function lifetime(now: Date, days: number) {
  return {
    notBefore: new Date(now.getTime() - BACKDATE_MS),
    notAfter: new Date(now.getTime() + days * DAY_MS),
  };
}
