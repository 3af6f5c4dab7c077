import { execFileSync } from 'node:child_process';
import { lstatSync, readdirSync, truncateSync } from 'node:fs';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import type { NginxSettings } from '../../../gitops/appliers/proxy/nginx/settings.ts';
import type { put } from './proxy.ts';

/**
 * Shows what would be on the disk after a power failure. Copies nginx's folder before each operation on the file system
 * while the second batch of changes is installed, and empties in the copy each file that wasn't synced by then.
 *
 * Arguments: the settings as JSON, the certificates' folder, the folder for the copies (0, 1, 2, …), and two batches
 * of changes as JSON.
 */
const [, , settingsJson = '{}', tls = '', copies = '', batchesJson = '[]'] = process.argv;
const settings = JSON.parse(settingsJson) as NginxSettings; // the test's own, without certificates
const [before = [], watched = []] = JSON.parse(batchesJson) as ReturnType<typeof put>[][]; // the test's own

let watching = false;
let taken = 0;
/** Inodes of files that were written to and not synced since. */
const unsynced = new Set<number>();

function copy(): void {
  if (!watching) return;
  const target = join(copies, String(taken));
  taken += 1;
  execFileSync('cp', ['-a', settings.prefix, target]);
  for (const entry of readdirSync(settings.prefix, { recursive: true, encoding: 'utf8' })) {
    const stat = lstatSync(join(settings.prefix, entry), { throwIfNoEntry: false });
    if (stat?.isFile() && unsynced.has(stat.ino)) truncateSync(join(target, entry));
  }
}

/** The operations that change something. No copy is made before a read. */
const CHANGING = ['writeFile', 'rename', 'link', 'symlink', 'mkdir', 'rm', 'open'] as const;
for (const name of CHANGING) {
  const original = fs[name] as (...args: unknown[]) => Promise<unknown>; // each is called with its own arguments
  const wrapped = async (...args: unknown[]) => {
    copy();
    const result = await original(...args);
    if (name === 'writeFile') unsynced.add(lstatSync(String(args[0])).ino);
    return result;
  };
  Object.assign(fs, { [name]: wrapped });
}
const probe = await fs.open('/dev/null');
const handle = Object.getPrototypeOf(probe) as fs.FileHandle; // the prototype of all handles
await probe.close();
const { sync, writeFile } = handle;
handle.sync = async function (this: fs.FileHandle) {
  copy();
  await sync.call(this);
  unsynced.delete((await this.stat()).ino);
};
handle.writeFile = async function (this: fs.FileHandle, ...args: Parameters<typeof writeFile>) {
  await writeFile.apply(this, args);
  unsynced.add((await this.stat()).ino);
};
syncBuiltinESMExports();

const { nginxBackend } = await import('../../../gitops/appliers/proxy/nginx/backend.ts');
const { plainFiles } = await import('./proxy.ts');
const backend = nginxBackend({ ...settings, certificates: plainFiles(tls) });
await backend.start();
await backend.install(before);
watching = true;
const outcomes = await backend.install(watched);
copy();
watching = false;
await backend.close();
process.stdout.write(
  `${JSON.stringify({ copies: taken, outcomes: outcomes.map(({ status }) => status) })}\n`,
);
process.exit(0);
