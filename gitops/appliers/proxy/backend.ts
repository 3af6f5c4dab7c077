import type { Identity } from '../../base/ownership.ts';
import type { CertificateSource, ServedName } from './certificates.ts';
import type { ProxySpec } from './desired.ts';
import type { TrustedPeers } from './policy.ts';

/** Where custom domains lead: the edge's own socket. `Host` and SNI are the site's edge hostname. */
export interface EdgeUpstream {
  readonly scheme: 'http' | 'https';
  /** An address, never a name. */
  readonly address: string;
  readonly port: number;
}

/** What one name may have of this host; more is answered with 429 (requests) or 503 (connections). */
export interface NameLimits {
  readonly requestsPerSecond: number;
  /** Requests that are being answered at a time. */
  readonly connections: number;
}

/** More than one tag server answers, and a small part of what nginx takes: 8,192 connections a worker. */
export const DEFAULT_LIMITS: NameLimits = { requestsPerSecond: 500, connections: 500 };

/** What every proxy is told, whatever it is made of. */
export interface ProxySettings {
  /** Its own folder: generations, logs, the ports that were picked. Nobody else writes here. */
  readonly prefix: string;
  /** Addresses to bind, `['127.0.0.1']` say. */
  readonly listen: readonly string[];
  /** 0: a free one is picked once and remembered in the prefix. */
  readonly httpPort: number;
  readonly tlsPort: number;
  readonly hopSecret: string;
  /** Thumbprint of the key of the ACME account whose challenges are answered (RFC 7638); unset: none are. */
  readonly challengeKey?: string;
  readonly edgeUpstream: EdgeUpstream;
  readonly certificates: CertificateSource;
  /** Who is believed about the visitor's address; asked at every change. Nobody unless given. */
  readonly trusted?: () => TrustedPeers;
  readonly identity: Identity;
  /** PEM file that an `https` edge is verified by; the system's certificates unless told. */
  readonly ca?: string;
}

/** Where a started proxy answers. */
export interface ProxyEndpoint {
  readonly address: string;
  readonly httpPort: number;
  readonly tlsPort: number;
}

/** One resource as it stands in the proxy, or `spec: null` where it goes. */
export interface ProxyChange {
  readonly key: string;
  readonly mark: string;
  readonly adopt: boolean;
  readonly spec: ProxySpec | null;
}

/** A resource found in the proxy. */
interface InstalledVhosts {
  readonly key: string;
  /** The text where a mark stands; whose it is is not the backend's to judge. */
  readonly mark: string | undefined;
  /** False where it isn't what was written, or isn't what the proxy serves now. */
  readonly intact: boolean;
  /** The names in it; `null` where it can't be read as what was written. */
  readonly names: readonly ServedName[] | null;
  readonly path: string;
}

/**
 * A proxy that serves vhosts: nginx, or the embedded one. Nothing listens before `start`, which serves at once what
 * an earlier process applied.
 */
export interface ProxyBackend {
  start(): Promise<ProxyEndpoint>;
  /** What `start` answered. */
  endpoint(): ProxyEndpoint;
  /** Throws `RetryableError` where it can't be read: unreadable is not empty. */
  installed(): Promise<readonly InstalledVhosts[]>;
  /**
   * One batch at a time, one outcome a change, in order; `changed` is false where the proxy served just that already.
   * Throws where the batch as a whole couldn't be served; what was served before still is.
   */
  install(changes: readonly ProxyChange[]): Promise<readonly PromiseSettledResult<{ changed: boolean }>[]>;
  /** Something ended that should have stayed. */
  events(signal: AbortSignal): AsyncIterable<void>;
  /** Housekeeping that changes nothing of what is served; called now and then, and never at once with itself. */
  upkeep?(): Promise<void>;
  close(): Promise<void>;
}

/** Where this host itself reaches a proxy that listens on `addresses`. */
export function reachableAddress(addresses: readonly string[]): string {
  const [first = '127.0.0.1'] = addresses;
  if (first === '0.0.0.0') return '127.0.0.1';
  return first === '[::]' ? '::1' : first.replace(/^\[|\]$/g, '');
}
