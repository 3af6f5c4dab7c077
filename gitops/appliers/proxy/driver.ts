import { join } from 'node:path';
import type { z } from 'zod';
import type { Identity } from '../../base/ownership.ts';
import type { EdgeUpstream, ProxyBackend, ProxySettings } from './backend.ts';
import type { CertificateSource } from './certificates.ts';
import type { CloudflareRanges } from './cloudflare-ranges.ts';
import { nginxBackend } from './nginx/backend.ts';
import type { proxySettings } from './settings.ts';

export interface ProxyDriverDeps {
  readonly stateDir: string;
  readonly hopSecret: string;
  /** See `ProxySettings`. */
  readonly challengeKey: string | null;
  readonly identity: Identity;
  readonly certificates: CertificateSource;
  readonly ranges: Pick<CloudflareRanges, 'current'>;
  readonly now: () => number;
  embedded(settings: ProxySettings): ProxyBackend;
}

/** The proxy that the environment asks for, not started yet. */
export function proxyDriver(env: z.output<typeof proxySettings>, deps: ProxyDriverDeps): ProxyBackend {
  const settings: ProxySettings = {
    prefix: join(deps.stateDir, 'proxy'),
    listen: env.PROXY_LISTEN,
    httpPort: env.PROXY_HTTP_PORT,
    tlsPort: env.PROXY_TLS_PORT,
    hopSecret: deps.hopSecret,
    edgeUpstream: edgeUpstream(env.EDGE_UPSTREAM),
    certificates: deps.certificates,
    ...(deps.challengeKey === null ? {} : { challengeKey: deps.challengeKey }),
    trusted: () => ({ cloudflare: deps.ranges.current(), own: env.TRUSTED_PROXIES }),
    identity: deps.identity,
  };
  if (env.PROXY_DRIVER === 'embedded') return deps.embedded(settings);
  return nginxBackend({
    ...settings,
    bin: env.NGINX_BIN,
    limits: { requestsPerSecond: env.NAME_REQUESTS_PER_SECOND, connections: env.NAME_CONNECTIONS },
    now: deps.now,
    ...(env.NGINX_SYSTEM_CONFIG === undefined ? {} : { systemConfig: env.NGINX_SYSTEM_CONFIG }),
  });
}

/** Scheme, address and port of a URL. */
export function edgeUpstream(text: string): EdgeUpstream {
  const url = new URL(text);
  const scheme = url.protocol === 'https:' ? 'https' : 'http';
  return { scheme, address: url.hostname, port: Number(url.port) || (scheme === 'https' ? 443 : 80) };
}
