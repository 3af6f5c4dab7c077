import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join, parse } from 'node:path';
import { fileStem } from '../../base/file-stem.ts';
import type { CertificateFiles, Issuer } from './issue-certificates.ts';

/** Loaded only when needed: most starts issue nothing. */
const issuing = () => import('./issue-certificates.ts');

/** The curve of all keys, as WebCrypto names it. */
const CURVE = { name: 'ECDSA', namedCurve: 'P-256' };
/** Stem of the CA's own files. Each name that is served contains a dot or a hyphen, so none collides with it. */
const CA = 'ca';
const LEAF_ENDINGS: ReadonlySet<string> = new Set(['.pem', '.key']);
const DAY_MS = 86_400_000;
const CA_DAYS = 3650;
/** The longest that browsers accept. */
const LEAF_DAYS = 397;

/** It can serve a provisioner as the source of certificates. */
export interface LocalCa {
  /** PEM file of the CA's certificate. Clients must trust it. */
  readonly caFile: string;
  /** Issues a missing certificate. */
  pathsFor(host: string): Promise<CertificateFiles>;
  /** Removes the certificates of all other names. */
  retain(served: readonly { readonly host: string }[]): Promise<void>;
}

interface LocalCaOptions {
  readonly now?: () => Date;
  readonly caDays?: number;
  readonly leafDays?: number;
  /** The CA can sign only for this name and names under it (name constraints). Unset: for every name. */
  readonly onlyName?: string;
  /** PEM of its key, if it has to be made. Unset: a random one. */
  readonly key?: string;
}

/**
 * Opens a certificate authority in `directory`, and creates it at the first call. It issues a server certificate for
 * each requested host (`<host>.pem` with the CA's certificate, `<host>.key`), and replaces one that is damaged, issued
 * by another CA, or in the last third of its life. Keys are readable by their owner only.
 */
export async function ensureLocalCa(
  directory: string,
  { now = () => new Date(), caDays = CA_DAYS, leafDays = LEAF_DAYS, onlyName, key }: LocalCaOptions = {},
): Promise<LocalCa> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const caFile = join(directory, 'ca.pem');
  const issuer =
    (await readIssuer(directory, now(), { leafDays, onlyName })) ??
    (await (await issuing()).issueCa(directory, { now: now(), days: caDays, onlyName, key }));
  const pending = new Map<string, Promise<CertificateFiles>>();
  return {
    caFile,
    pathsFor(host) {
      // Two vhosts may request one name at the same time. Issuing twice in parallel could mix keys and certificates.
      const issued =
        pending.get(host) ??
        ensureLeaf(directory, issuer, { host, now: now(), days: leafDays }).finally(() =>
          pending.delete(host),
        );
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

interface Leaf {
  readonly host: string;
  readonly now: Date;
  readonly days: number;
}

async function ensureLeaf(directory: string, issuer: Issuer, leaf: Leaf): Promise<CertificateFiles> {
  const stem = fileStem(leaf.host);
  const paths = { cert: join(directory, `${stem}.pem`), key: join(directory, `${stem}.key`) };
  if (!(await isUsable(paths, issuer, leaf))) await (await issuing()).issueLeaf(paths, issuer, leaf);
  return paths;
}

async function isUsable({ cert, key }: CertificateFiles, issuer: Issuer, { host, now, days }: Leaf) {
  try {
    const leaf = new X509Certificate(await readFile(cert));
    const left = leaf.validToDate.getTime() - now.getTime();
    return (
      leaf.checkHost(host) !== undefined &&
      leaf.verify(new X509Certificate(issuer.pem).publicKey) &&
      leaf.checkPrivateKey(createPrivateKey(await readFile(key))) &&
      left > (days * DAY_MS) / 3
    );
  } catch {
    return false;
  }
}

/**
 * `null` if the CA is missing, damaged, not limited to a given `onlyName`, or expires before a certificate issued now.
 * A new CA issues all certificates again.
 */
async function readIssuer(
  directory: string,
  now: Date,
  { leafDays, onlyName }: { readonly leafDays: number; readonly onlyName: string | undefined },
): Promise<Issuer | null> {
  try {
    const pem = await readFile(join(directory, 'ca.pem'), 'utf8');
    const keyObject = createPrivateKey(await readFile(join(directory, 'ca.key')));
    const parsed = new X509Certificate(pem);
    const left = parsed.validToDate.getTime() - now.getTime();
    if (!parsed.checkPrivateKey(keyObject) || left < leafDays * DAY_MS) return null;
    const der = keyObject.export({ format: 'der', type: 'pkcs8' });
    const key = await crypto.subtle.importKey('pkcs8', der, CURVE, false, ['sign']);
    if (onlyName !== undefined && !(await issuing()).isLimitedTo(onlyName, pem)) return null;
    return { pem, key };
  } catch {
    return null;
  }
}
