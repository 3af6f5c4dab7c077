import { join } from 'node:path';
import type { z } from 'zod';
import type { Log } from '../../../base/log.ts';
import type { EdgeUpstream, NameLimits, ProxyBackend, ProxySettings } from './backend.ts';
import type { CloudflareRanges } from './cloudflare-ranges.ts';
import type { proxySettings } from './settings.ts';

type Environment = z.output<typeof proxySettings>;

/** What any of the drivers needs. */
export interface DriverSettings extends ProxySettings {
  /** nginx; a name on PATH, or an absolute path. 1.19.5 or newer. */
  readonly bin: string;
  /** The configuration of the system's nginx, which includes our tree; unset: an nginx of our own is started. */
  readonly systemConfig?: string;
  /** A MaxMind DB file in which nginx finds the places of visitors; unset: only the edge knows them. */
  readonly geoDatabase?: string;
  readonly limits: NameLimits;
  /** The maximum size of a site's log together with its rotated files, in bytes. */
  readonly logBytes: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}

type BuildBackend = (settings: DriverSettings) => ProxyBackend;

interface ProxyDriverDeps
  extends Pick<
    DriverSettings,
    'listen' | 'hopSecret' | 'previousHopSecret' | 'identity' | 'certificates' | 'now' | 'log'
  > {
  readonly stateDir: string;
  /** See `ProxySettings`; `null`: none. */
  readonly challengeKey: string | null;
  readonly ranges: Pick<CloudflareRanges, 'current'>;
  /** Loads the backend of each driver. Only the driver that the environment names is loaded. */
  readonly drivers: Readonly<Record<Environment['PROXY_DRIVER'], () => Promise<BuildBackend>>>;
}

/** The proxy that the environment asks for, not started yet. */
export async function proxyDriver(env: Environment, deps: ProxyDriverDeps): Promise<ProxyBackend> {
  const { stateDir, challengeKey, ranges, drivers, ...shared } = deps;
  if (env.PROXY_DRIVER === 'embedded' && env.GEOIP_DATABASE !== undefined) {
    deps.log.warn({}, 'the embedded proxy doesn’t use GEOIP_DATABASE: only nginx does');
  }
  const build = await drivers[env.PROXY_DRIVER]();
  return build({
    ...shared,
    prefix: join(stateDir, 'proxy'),
    httpPort: env.PROXY_HTTP_PORT,
    tlsPort: env.PROXY_TLS_PORT,
    edgeUpstream: edgeUpstream(env.EDGE_UPSTREAM),
    ...(challengeKey === null ? {} : { challengeKey }),
    trusted: () => ({ cloudflare: ranges.current(), own: env.TRUSTED_PROXIES }),
    bin: env.NGINX_BIN,
    ...(env.NGINX_SYSTEM_CONFIG === undefined ? {} : { systemConfig: env.NGINX_SYSTEM_CONFIG }),
    ...(env.GEOIP_DATABASE === undefined ? {} : { geoDatabase: env.GEOIP_DATABASE }),
    logBytes: env.SITE_LOG_MEGABYTES * 1_000_000,
    limits: { requestsPerSecond: env.NAME_REQUESTS_PER_SECOND, connections: env.NAME_CONNECTIONS },
  });
}

/** Scheme, address and port of a URL. */
export function edgeUpstream(text: string): EdgeUpstream {
  const url = new URL(text);
  const scheme = url.protocol === 'https:' ? 'https' : 'http';
  return { scheme, address: url.hostname, port: Number(url.port) || (scheme === 'https' ? 443 : 80) };
}
