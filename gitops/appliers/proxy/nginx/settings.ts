import { join } from 'node:path';
import type { Log } from '../../../../base/log.ts';
import { DEFAULT_LIMITS, type NameLimits, type ProxySettings } from '../backend.ts';
import { type MainSettings, mainSchema, plain } from './quote.ts';

export interface NginxSettings extends ProxySettings {
  /** The program; `nginx` on PATH, or an absolute path. 1.19.5 or newer. */
  readonly bin: string;
  readonly limits?: NameLimits;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** Timeout of a start or reload, in milliseconds. After a timeout, the previous tree is restored. */
  readonly reloadTimeoutMs?: number;
  /** The maximum size of a site's log together with its rotated files, in bytes. */
  readonly logBytes: number;
  /** Milliseconds between two checks of the logs' sizes; default: 30,000. */
  readonly rotationMs?: number;
  readonly log?: Log;
  /** How long connections to old workers may stay open after a reload, in seconds. */
  readonly shutdownSeconds?: number;
  /** A number, or `auto` for one per core. */
  readonly workerProcesses?: number | 'auto';
  /** A MaxMind DB file in which nginx finds the places of visitors; unset: only the edge knows them. */
  readonly geoDatabase?: string;
  /** The configuration of the system's nginx, which includes our tree; unset: an nginx of our own is started. */
  readonly systemConfig?: string;
}

/** Throws `TerminalError` with the names of all wrong settings, without their values. */
export function mainSettings(
  settings: NginxSettings,
  ports: { httpPort: number; tlsPort: number; statusPort: number },
  { geoModule, http2 }: { readonly geoModule: string | null; readonly http2: MainSettings['http2'] },
): MainSettings {
  const limits = settings.limits ?? DEFAULT_LIMITS;
  const main = {
    ...ports,
    listen: settings.listen,
    hopSecret: settings.hopSecret,
    challengeKey: settings.challengeKey ?? null,
    edge: settings.edgeUpstream,
    // nginx has no default CAs; this is the path of the bundle on Debian and Alpine.
    ca: settings.ca ?? '/etc/ssl/certs/ca-certificates.crt',
    geoModule,
    http2,
    limits: {
      requestsPerSecond: limits.requestsPerSecond,
      // A burst may have the requests of two seconds, because pages send their hits in bursts.
      burst: 2 * limits.requestsPerSecond,
      connections: limits.connections,
    },
    shutdownSeconds: settings.shutdownSeconds ?? 30,
    systemLogs: settings.systemConfig === undefined ? null : join(settings.prefix, 'logs'),
    workerProcesses: settings.workerProcesses ?? 'auto',
    previousHopSecret: null,
    gateway: null,
  };
  return plain(mainSchema, main, 'the proxy’s settings');
}
