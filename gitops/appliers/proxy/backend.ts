import type { Identity } from '../../../base/ownership.ts';
import type { CertificateSource, ServedName } from './certificates.ts';
import type { ProxySpec } from './desired.ts';
import type { TrustedPeers } from './policy.ts';

/** The upstream of custom domains: the edge. `Host` and SNI are the site's edge hostname. */
export interface EdgeUpstream {
  readonly scheme: 'http' | 'https';
  /** An IP address, never a name. */
  readonly address: string;
  readonly port: number;
}

/** The limits of one name; excess is answered with 429 (requests) or 503 (connections). */
export interface NameLimits {
  readonly requestsPerSecond: number;
  /** Concurrent requests that don't come from the edge; on a custom domain, those of each visitor's address. */
  readonly connections: number;
  /** All concurrent requests; default: `NAME_SHARE`, or `connections` if that is more. */
  readonly all?: number;
}

/** The settings of every proxy backend. */
export interface ProxySettings {
  /** The folder that only this proxy uses: for generations, logs and the ports that were picked. */
  readonly prefix: string;
  /** Addresses to bind, `['127.0.0.1']` say. */
  readonly listen: readonly string[];
  /** 0: a free port is picked once and stored in the prefix. */
  readonly httpPort: number;
  readonly tlsPort: number;
  readonly hopSecret: string;
  /** The secret before it, which the edge may still send. */
  readonly previousHopSecret?: string | undefined;
  /** Thumbprint of the ACME account's key, for answers to challenges (RFC 7638); unset: challenges are not answered. */
  readonly challengeKey?: string;
  readonly edgeUpstream: EdgeUpstream;
  readonly certificates: CertificateSource;
  /** Peers that are trusted to state the visitor's address; read at every change. Default: none. */
  readonly trusted?: () => TrustedPeers;
  readonly identity: Identity;
  /** PEM file with the CA of an `https` edge; default: the system's CAs. */
  readonly ca?: string;
}

/** The address and ports of a started proxy. */
export interface ProxyEndpoint {
  readonly address: string;
  readonly httpPort: number;
  readonly tlsPort: number;
}

/** One resource to serve, or with `spec: null` to remove. */
export interface ProxyChange {
  readonly key: string;
  readonly mark: string;
  readonly adopt: boolean;
  readonly spec: ProxySpec | null;
}

/** A resource that the proxy has. */
interface InstalledVhosts {
  /** The resource's key, shortened by `shortKey`. */
  readonly key: string;
  /** The text in the mark's place; the backend does not interpret it. */
  readonly mark: string | undefined;
  /** False if it was edited or is outdated, or if the proxy neither serves it nor is about to. */
  readonly intact: boolean;
  /** True if it isn't intact, but not because of an edit: a template, setting or certificate has changed, say. */
  readonly outdated: boolean;
  /** Its names; `null` if it was edited or can't be read. */
  readonly names: readonly ServedName[] | null;
  readonly path: string;
}

/**
 * A proxy that serves vhosts: nginx, or the embedded one. It listens from `start` on, and serves at once what an
 * earlier process applied. `start` ends the proxy of another driver under the same prefix.
 */
export interface ProxyBackend {
  start(): Promise<ProxyEndpoint>;
  /** The result of `start`. */
  endpoint(): ProxyEndpoint;
  /** Throws `RetryableError` if it can't be read: an unreadable configuration is not an empty one. */
  installed(): Promise<readonly InstalledVhosts[]>;
  /**
   * Installs a batch; only one call may run at a time. Returns an outcome for each change, in order; `changed` is false
   * if the proxy already served it. Throws if the whole batch failed; the old configuration is served then. `expected`:
   * everything that must be served, as last observed.
   */
  install(
    changes: readonly ProxyChange[],
    expected?: readonly ProxyChange[],
  ): Promise<readonly PromiseSettledResult<{ changed: boolean }>[]>;
  /** An item for each unexpected end of the proxy. */
  events(signal: AbortSignal): AsyncIterable<void>;
  /** Paths of files in the proxy's folder that Tagyard neither wrote nor needs. */
  strangers?(): Promise<readonly string[]>;
  /** Call it before the process ends. nginx keeps serving, and a later `start` adopts it. The embedded proxy ends. */
  close(): Promise<void>;
}

/** The address at which this host reaches a proxy that listens on `addresses`. */
export function reachableAddress(addresses: readonly string[]): string {
  const [first = '127.0.0.1'] = addresses;
  if (first === '0.0.0.0') return '127.0.0.1';
  return first === '[::]' ? '::1' : first.replace(/^\[|\]$/g, '');
}
