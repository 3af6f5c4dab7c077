// The certificate library requires it to be loaded first.
import 'reflect-metadata';
import { createPrivateKey, randomBytes, type webcrypto, X509Certificate } from 'node:crypto';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join, parse } from 'node:path';
import * as x509 from '@peculiar/x509';
import type { CertificatePaths, CertificateSource } from '../appliers/proxy/certificates.ts';
import { removeFolderAt, writeDurably } from '../base/durable.ts';
import { fileStem } from '../base/file-stem.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
/** Stem of the CA's own files. No name that is served collides with it: it contains a dot or a hyphen. */
const CA = 'ca';
const LEAF_ENDINGS: ReadonlySet<string> = new Set(['.pem', '.key']);
const DAY_MS = 86_400_000;
const CA_DAYS = 3650;
/** The longest that browsers accept. */
const LEAF_DAYS = 397;
/** Clocks of containers and hosts may differ a little. */
const BACKDATE_MS = 3_600_000;

export interface LocalCa extends CertificateSource {
  /** PEM file of the CA's certificate. Clients must trust it. */
  readonly caFile: string;
  /** Issues a missing certificate, so it never returns `null`. */
  pathsFor(host: string): Promise<CertificatePaths>;
}

interface LocalCaOptions {
  readonly now?: () => Date;
  readonly caDays?: number;
  readonly leafDays?: number;
  /** The only name that the CA can sign for (name constraints). Unset: it can sign for every name. */
  readonly onlyName?: string;
}

interface Issuer {
  readonly certificate: x509.X509Certificate;
  readonly pem: string;
  readonly key: webcrypto.CryptoKey;
  readonly leafDays: number;
}

/**
 * Opens a certificate authority in `directory`, and creates it at the first call. It issues a server certificate for
 * each requested host (`<host>.pem` with the CA's certificate, `<host>.key`), and replaces one that is damaged, issued
 * by another CA, or in the last third of its life. Keys are readable by their owner only.
 */
export async function ensureLocalCa(
  directory: string,
  { now = () => new Date(), caDays = CA_DAYS, leafDays = LEAF_DAYS, onlyName }: LocalCaOptions = {},
): Promise<LocalCa> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const caFile = join(directory, 'ca.pem');
  const limits = onlyName === undefined ? [] : [nameConstraints(onlyName)];
  const own =
    (await readIssuer(directory, now(), { leafDays, limits })) ??
    (await makeIssuer(directory, lifetime(now(), caDays), limits));
  const issuer = { ...own, leafDays };
  const pending = new Map<string, Promise<CertificatePaths>>();
  return {
    caFile,
    pathsFor(host) {
      // Two vhosts may request one name at once. Two issues at a time could mix their keys and certificates.
      const issued =
        pending.get(host) ?? ensureLeaf(directory, issuer, host, now()).finally(() => pending.delete(host));
      pending.set(host, issued);
      return issued;
    },
    retain: (served) => removeOthers(directory, new Set(served.map(({ host }) => fileStem(host)))),
  };
}

/** A certificate that is removed too early is issued again at the next request. */
async function removeOthers(directory: string, kept: ReadonlySet<string>): Promise<void> {
  const others = (await readdir(directory)).filter((name) => {
    const { name: host, ext } = parse(name);
    return LEAF_ENDINGS.has(ext) && host !== CA && !kept.has(host);
  });
  await Promise.all(others.map((name) => rm(join(directory, name), { force: true })));
}

async function ensureLeaf(directory: string, issuer: Issuer, host: string, now: Date) {
  const stem = fileStem(host);
  const paths = { cert: join(directory, `${stem}.pem`), key: join(directory, `${stem}.key`) };
  if (await isUsable(paths, issuer, host, now)) return paths;
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial(),
    issuer: issuer.certificate.subject,
    // Clients read the name from the extension only. A common name is limited to 64 characters.
    subject: 'O=Tagyard',
    publicKey: keys.publicKey,
    signingKey: issuer.key,
    signingAlgorithm: ALGORITHM,
    ...lifetime(now, issuer.leafDays),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: host }]),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.certificate),
    ],
  });
  // The key first: after a crash in between, key and certificate don't match and are replaced.
  await writeDurably(paths.key, await privatePem(keys.privateKey));
  await writeDurably(paths.cert, `${certificate.toString('pem')}\n${issuer.pem}`, 0o644);
  return paths;
}

async function isUsable({ cert, key }: CertificatePaths, issuer: Issuer, host: string, now: Date) {
  try {
    const leaf = new X509Certificate(await readFile(cert));
    const left = leaf.validToDate.getTime() - now.getTime();
    return (
      leaf.checkHost(host) !== undefined &&
      leaf.verify(new X509Certificate(issuer.pem).publicKey) &&
      leaf.checkPrivateKey(createPrivateKey(await readFile(key))) &&
      left > (issuer.leafDays * DAY_MS) / 3
    );
  } catch {
    return false;
  }
}

/**
 * `null` if the CA is missing, damaged, has other limits, or expires before a certificate that it would issue now. A new
 * CA replaces all its certificates.
 */
async function readIssuer(
  directory: string,
  now: Date,
  { leafDays, limits }: { readonly leafDays: number; readonly limits: readonly x509.Extension[] },
): Promise<Omit<Issuer, 'leafDays'> | null> {
  try {
    const pem = await readFile(join(directory, 'ca.pem'), 'utf8');
    const keyObject = createPrivateKey(await readFile(join(directory, 'ca.key')));
    const parsed = new X509Certificate(pem);
    const left = parsed.validToDate.getTime() - now.getTime();
    if (!parsed.checkPrivateKey(keyObject) || left < leafDays * DAY_MS) return null;
    const der = keyObject.export({ format: 'der', type: 'pkcs8' });
    const key = await crypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']);
    const certificate = new x509.X509Certificate(pem);
    const isLimited = limits.every((limit) => {
      const present = certificate.getExtension(limit.type);
      return present !== null && Buffer.from(present.value).equals(Buffer.from(limit.value));
    });
    return isLimited ? { certificate, pem, key } : null;
  } catch {
    return null;
  }
}

async function makeIssuer(
  directory: string,
  life: ReturnType<typeof lifetime>,
  limits: readonly x509.Extension[],
) {
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: `CN=Tagyard local CA ${randomBytes(4).toString('hex')}`,
    keys,
    signingAlgorithm: ALGORITHM,
    ...life,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ...limits,
    ],
  });
  const pem = `${certificate.toString('pem')}\n`;
  await writeDurably(join(directory, 'ca.key'), await privatePem(keys.privateKey));
  const file = join(directory, 'ca.pem');
  await removeFolderAt(file);
  await writeDurably(file, pem, 0o644);
  return { certificate, pem, key: keys.privateKey };
}

const NAME_CONSTRAINTS = '2.5.29.30';
const ANY_ADDRESS = [Buffer.alloc(8), Buffer.alloc(32)];

/**
 * Permits one DNS name, excludes all IPv4 and IPv6 addresses (RFC 5280, 4.2.1.10). The name has at most 63 characters,
 * so that each length is one octet.
 */
function nameConstraints(name: string): x509.Extension {
  const subtree = (tag: number, value: Uint8Array) => tlv(0x30, tlv(tag, value));
  const permitted = tlv(0xa0, subtree(0x82, Buffer.from(name, 'ascii')));
  const excluded = tlv(0xa1, ...ANY_ADDRESS.map((address) => subtree(0x87, address)));
  return new x509.Extension(NAME_CONSTRAINTS, true, tlv(0x30, permitted, excluded));
}

function tlv(tag: number, ...values: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const value = Buffer.concat(values);
  if (value.length > 255) throw new RangeError('a name that a CA is limited to has at most 63 characters');
  const length = value.length < 128 ? [value.length] : [0x81, value.length];
  return Uint8Array.from([tag, ...length, ...value]);
}

function newKeys() {
  return crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
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
