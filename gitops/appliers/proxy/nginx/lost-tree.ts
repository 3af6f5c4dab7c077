import { X509Certificate } from 'node:crypto';
import { connect } from 'node:tls';
import { RetryableError } from '../../../../base/errors.ts';
import { counted } from '../../../../base/text.ts';
import type { ProxyChange, ProxyEndpoint } from '../backend.ts';
import type { CertificateSource } from '../certificates.ts';
import { servedName } from '../desired.ts';

const PROBE_MS = 2_000;
/**
 * How long a reload waits for lost certificates. A name that gets none (its DNS has moved away, its authority refuses it)
 * must not keep all other sites of the host from being changed.
 */
const HELD_MS = 15 * 60_000;

/**
 * The changes with which nginx may be reloaded although the tree that it serves is lost: all vhosts at once, since a
 * reload drops those that the new tree lacks. Throws `RetryableError` while nginx serves a name with a certificate whose
 * files are lost too: it keeps them in memory, and a reload would end TLS for the name. `lostSince`: when the loss was first
 * seen, by `Date.now()`; after `HELD_MS` the others no longer wait.
 */
export async function wholeTree(
  changes: readonly ProxyChange[],
  expected: readonly ProxyChange[],
  {
    certificates,
    endpoint,
    lostSince,
  }: {
    readonly certificates: CertificateSource;
    readonly endpoint: ProxyEndpoint;
    readonly lostSince: number;
  },
): Promise<readonly ProxyChange[]> {
  const changed = new Set(changes.map(({ key }) => key));
  const all = [...changes, ...expected.filter(({ key }) => !changed.has(key))];
  if (Date.now() - lostSince > HELD_MS) return all;
  const names = all.flatMap(({ spec }) => spec?.vhosts ?? []).map(servedName);
  const lost = await Promise.all(
    names.map(async ({ host, tls }) => {
      const paths = await certificates.pathsFor(host, tls).catch(() => null);
      return paths === null && (await isServed(endpoint, host)) ? [host] : [];
    }),
  ).then((found) => found.flat());
  if (lost.length === 0) return all;
  throw new RetryableError(
    `the files of ${counted(lost.length, 'certificate')} that nginx serves are lost (${lost[0]}): it keeps its configuration until there are new ones, at most for 15 minutes; or restore acme/ and tls-served/ of STATE_DIR`,
  );
}

/** Whether the proxy presents a valid certificate for a name. */
async function isServed({ address, tlsPort }: ProxyEndpoint, host: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: address, port: tlsPort, servername: host, rejectUnauthorized: false });
  socket.setTimeout(PROBE_MS, () => resolve(false));
  socket.once('error', () => resolve(false));
  socket.once('secureConnect', () => {
    const leaf = new X509Certificate(socket.getPeerCertificate().raw);
    resolve(leaf.checkHost(host) !== undefined && leaf.validToDate.getTime() > Date.now());
  });
  return await promise.finally(() => socket.destroy());
}
