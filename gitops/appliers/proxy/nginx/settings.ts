import { join } from 'node:path';
import { DEFAULT_LIMITS, type NameLimits, type ProxySettings } from '../backend.ts';
import { type MainSettings, mainSchema, plain } from './quote.ts';

export interface NginxSettings extends ProxySettings {
  /** The program; `nginx` on PATH, or an absolute path. 1.19.5 or newer. */
  readonly bin: string;
  readonly limits?: NameLimits;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** How long a start or a reload may take before the tree before it is put back, milliseconds. */
  readonly reloadTimeoutMs?: number;
  /** How long connections of an old generation may live on, seconds. */
  readonly shutdownSeconds?: number;
  /** A number, or `auto` for one a core. */
  readonly workerProcesses?: number | 'auto';
  /** The configuration of the system's own nginx, which includes our tree then; unset: we run one of our own. */
  readonly systemConfig?: string;
}

/** Throws `TerminalError` with every setting at fault, never its value. */
export function mainSettings(
  settings: NginxSettings,
  ports: { httpPort: number; tlsPort: number; statusPort: number },
): MainSettings {
  const limits = settings.limits ?? DEFAULT_LIMITS;
  const main = {
    ...ports,
    listen: settings.listen,
    hopSecret: settings.hopSecret,
    challengeKey: settings.challengeKey ?? null,
    edge: settings.edgeUpstream,
    // nginx has no trust of its own to fall back on; this bundle is Debian's and Alpine's.
    ca: settings.ca ?? '/etc/ssl/certs/ca-certificates.crt',
    limits: {
      requestsPerSecond: limits.requestsPerSecond,
      // Two seconds' worth at once: pages send their hits in bursts.
      burst: 2 * limits.requestsPerSecond,
      connections: limits.connections,
    },
    shutdownSeconds: settings.shutdownSeconds ?? 30,
    systemLogs: settings.systemConfig === undefined ? null : join(settings.prefix, 'logs'),
    workerProcesses: settings.workerProcesses ?? 'auto',
  };
  return plain(mainSchema, main, 'the proxy’s settings');
}
