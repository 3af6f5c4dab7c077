import { join } from 'node:path';
import type { DriverSettings } from '../driver.ts';
import { type MainSettings, mainSchema, plain } from './quote.ts';

export interface NginxSettings
  extends Omit<DriverSettings, 'limits' | 'now' | 'log'>,
    Partial<Pick<DriverSettings, 'limits' | 'now' | 'log'>> {
  /** Timeout of a start or reload, in milliseconds. After a timeout, the previous tree is restored. */
  readonly reloadTimeoutMs?: number;
  /** Milliseconds between two checks of the logs' sizes; default: 30,000. */
  readonly rotationMs?: number;
  /** How long connections to old workers may stay open after a reload, in seconds. */
  readonly shutdownSeconds?: number;
  /** A number, or `auto` for one per core. */
  readonly workerProcesses?: number | 'auto';
}

/** Throws `TerminalError` with the names of all wrong settings, without their values. */
export function mainSettings(
  settings: NginxSettings,
  ports: { httpPort: number; tlsPort: number; statusPort: number },
  { geoModule, http2 }: { readonly geoModule: string | null; readonly http2: MainSettings['http2'] },
): MainSettings {
  const { edgeUpstream: edge, systemConfig, prefix } = settings;
  const systemLogs = systemConfig === undefined ? null : join(prefix, 'logs');
  const main = { ...settings, ...ports, edge, geoModule, http2, systemLogs };
  return plain(mainSchema, main, 'the proxy’s settings');
}
