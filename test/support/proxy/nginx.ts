import { accessSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { PATH_WITH_SBIN, REFUSALS } from '../components.ts';

/** The nginx that suites run; a bare name if there is none, and `describeWith` skips its suites. */
export const NGINX =
  PATH_WITH_SBIN.split(delimiter)
    // Other files of this process may declare nginx.
    .filter((folder) => folder !== REFUSALS)
    .map((folder) => join(folder, 'nginx'))
    .find(isThere) ?? 'nginx';

/** The settings of nginx in suites that need no others. */
export const NGINX_SETTINGS = { bin: NGINX, workerProcesses: 1, logBytes: 192 * 1024 * 1024 } as const;

function isThere(path: string): boolean {
  try {
    accessSync(path);
    return true;
  } catch {
    return false;
  }
}
