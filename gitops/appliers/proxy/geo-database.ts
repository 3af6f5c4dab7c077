import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { type Log, warner } from '../../../base/log.ts';
import { runCommand } from '../../clients/command.ts';

interface GeoSettings {
  /** nginx's program. */
  readonly bin: string;
  readonly geoDatabase?: string;
  readonly log?: Log;
}

interface GeoDatabase {
  /** nginx's GeoIP2 module; `null`: it isn't needed, or isn't installed. */
  readonly module: string | null;
  /** The database's path if nginx can use it, else `null`. An unreadable one must not keep nginx from serving. */
  current(): string | null;
}

/** Precedes a database’s metadata, which has at most 128 KiB (MaxMind DB file format specification 2.0). */
const MARKER = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1');
const MAX_METADATA = 128 * 1024;

/** The operator's database of places. Warns once for each reason why it can't be used. */
export async function openGeoDatabase({ bin, geoDatabase: path, log }: GeoSettings): Promise<GeoDatabase> {
  if (path === undefined) return { module: null, current: () => null };
  const module = await findModule(bin);
  const warnOnce = warner((message) =>
    log?.warn({}, `the country of visitors who don’t come through Cloudflare is unknown: ${message}`),
  );
  return {
    module,
    current() {
      const fault = module === null ? `${bin} has no GeoIP2 module` : databaseFault(path);
      warnOnce(fault === null ? null : `${fault} (docs/deploy-host.md, Places)`);
      return fault === null ? path : null;
    },
  };
}

/** Searches the folder in which this build of nginx has its modules. */
async function findModule(bin: string): Promise<string | null> {
  const { stderr } = await runCommand(bin, ['-V']);
  const folder = /--modules-path=(\S+)/.exec(stderr)?.[1];
  const path = folder === undefined ? null : join(folder, 'ngx_http_geoip2_module.so');
  return path !== null && existsSync(path) ? path : null;
}

/** Why nginx would refuse a database, and with it the whole configuration; `null` if nginx accepts the database. */
function databaseFault(path: string): string | null {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    const { size } = fstatSync(file);
    const end = Buffer.alloc(Math.min(size, MAX_METADATA));
    readSync(file, end, 0, end.length, size - end.length);
    return end.includes(MARKER) ? null : `${path} is not a MaxMind DB file`;
  } catch (error) {
    return `${path} can’t be read: ${(error as NodeJS.ErrnoException).code}`; // fs throws nothing else
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
