import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { TerminalError } from '../../../../base/errors.ts';
import { contentHash } from '../../../../base/ownership.ts';
import {
  type CertificateSource,
  certificateFor,
  isStillCurrent,
  type UsedCertificate,
} from '../certificates.ts';
import { type ProxySpec, servedName, type Vhost } from '../desired.ts';
import type { ServedVhost } from './server.ts';

/** The vhosts of one key, ready to be served, with the spec and certificates that they were loaded from. */
export interface LoadedVhosts {
  readonly vhosts: readonly ServedVhost[];
  readonly specHash: string;
  readonly certificates: readonly UsedCertificate[];
}

/** Throws `TerminalError` if a certificate's file is missing or can't be used. A name may have none yet. */
export async function loadVhosts(spec: ProxySpec, source: CertificateSource): Promise<LoadedVhosts> {
  const loaded = await Promise.all(spec.vhosts.map((vhost) => loadVhost(vhost, source)));
  return {
    vhosts: loaded.map(({ served }) => served),
    specHash: contentHash(spec),
    certificates: loaded.map(({ certificate }) => certificate),
  };
}

/** True if these vhosts match `spec` and the current certificates. */
export async function isCurrent(
  { specHash, certificates }: LoadedVhosts,
  spec: ProxySpec,
  source: CertificateSource,
): Promise<boolean> {
  if (specHash !== contentHash(spec)) return false;
  const current = await Promise.all(certificates.map((used) => isStillCurrent(source, used)));
  return current.every(Boolean);
}

async function loadVhost(vhost: Vhost, source: CertificateSource) {
  const certificate = await certificateFor(source, servedName(vhost));
  const { files } = certificate;
  if (files === null) return { served: { vhost, context: null }, certificate };
  try {
    const [cert, key] = await Promise.all([readFile(files.cert), readFile(files.key)]);
    return { served: { vhost, context: createSecureContext({ cert, key }) }, certificate };
  } catch (cause) {
    throw new TerminalError(`the certificate ${files.cert} or its key can’t be used`, { cause });
  }
}

/** The vhosts that the proxy serves, by key and by host. */
export class VhostTable {
  readonly #byKey = new Map<string, LoadedVhosts>();
  readonly #byHost = new Map<string, { key: string; served: ServedVhost }>();

  get(key: string): LoadedVhosts | undefined {
    return this.#byKey.get(key);
  }

  find(host: string): ServedVhost | undefined {
    return this.#byHost.get(host)?.served;
  }

  /** The key that a host belongs to. */
  holderOf(host: string): string | undefined {
    return this.#byHost.get(host)?.key;
  }

  put(key: string, loaded: LoadedVhosts): void {
    this.remove(key);
    this.#byKey.set(key, loaded);
    for (const served of loaded.vhosts) this.#byHost.set(served.vhost.host, { key, served });
  }

  remove(key: string): void {
    for (const { vhost } of this.#byKey.get(key)?.vhosts ?? []) this.#byHost.delete(vhost.host);
    this.#byKey.delete(key);
  }
}
