import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { rm, statfs, writeFile } from 'node:fs/promises';
import { connect, type LookupFunction } from 'node:net';
import { join } from 'node:path';
import { counted } from '../../base/text.ts';
import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import { checkPart, NotChecked, PART_TIMEOUT_MS, skippedPart } from '../report/check-part.ts';
import type { PartCheck } from '../report/report.ts';
import type { PartName } from '../report/runbooks.ts';
import { EDGE_PATH, isOfWorker, visitEdge } from './edge-visit.ts';
import { checkPreviewPath, type PreviewPathDeps } from './preview-path.ts';

/** The least free space, in bytes: an image, a generation of nginx and the daemon's state need less. */
const LEAST_FREE_BYTES = 256 * 1024 * 1024;
const LEAST_FREE_FILES = 10_000;

/** Checks that the disk of a folder has room, and that the folder accepts a file. Never throws. */
export async function checkDisk(folder: string, leastFreeBytes = LEAST_FREE_BYTES): Promise<PartCheck> {
  return await checkPart('disk', {
    fix: 'full',
    async ask() {
      const room = await roomOf(folder, leastFreeBytes);
      const probe = join(folder, `.write-probe-${randomUUID()}`);
      await writeFile(probe, Buffer.alloc(4096), { flag: 'wx', flush: true }).finally(() =>
        rm(probe, { force: true }),
      );
      return room;
    },
  });
}

/**
 * Checks that the disk of Docker's images and containers has room. `dataRoot` resolves to their folder, to `null` if the
 * engine is remote. Never throws.
 */
export async function checkDockerDisk(
  dataRoot: () => Promise<string | null>,
  leastFreeBytes = LEAST_FREE_BYTES,
): Promise<PartCheck> {
  return await checkPart('docker_disk', {
    fix: 'full',
    async ask() {
      const folder = await dataRoot();
      // An engine in a virtual machine names a folder of that machine.
      if (folder === null || !existsSync(folder)) {
        throw new NotChecked('Docker’s data root is not on this machine');
      }
      return await roomOf(folder, leastFreeBytes);
    },
  });
}

/**
 * Checks that Docker's default bridge has an address of this host: by it, the sites' containers reach the proxy, and so
 * their preview server. Never throws.
 */
export async function checkDockerBridge(gateway: () => Promise<string | null>): Promise<PartCheck> {
  return await checkPart('docker_bridge', {
    fix: 'silent',
    async ask(_signal, fault) {
      const address = await gateway();
      if (address !== null) return `containers reach the proxy at ${address}`;
      throw fault(
        'Docker has no default bridge, so containers have no way to their preview server, and no new ones are started',
        'none',
      );
    },
  });
}

/** Says how much is free on the disk of a folder. Throws if that is too little. */
async function roomOf(folder: string, leastFreeBytes: number): Promise<string> {
  const { bavail, bsize, ffree, files } = await statfs(folder);
  const free = bavail * bsize;
  const room = `${Math.floor(free / 1024 / 1024)} MiB free on the disk of ${folder}`;
  if (free < leastFreeBytes) throw new Error(`only ${room}`);
  if (files > 0 && ffree < LEAST_FREE_FILES) {
    throw new Error(`only ${counted(ffree, 'more file fits', 'more files fit')} on the disk of ${folder}`);
  }
  return room;
}

/**
 * Checks that the proxy reacts to a request. For an unknown name it closes the connection without an answer. Never
 * throws.
 */
export async function checkProxy(
  { address, port }: { readonly address: string; readonly port: number },
  timeoutMs?: number,
): Promise<PartCheck> {
  return await checkPart('proxy', {
    fix: 'silent',
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    async ask(signal) {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      const socket = connect({ host: address, port, signal });
      let isConnected = false;
      const react = () => resolve(`it reacts on ${address}:${port}`);
      socket.once('connect', () => {
        isConnected = true;
        socket.write('GET / HTTP/1.0\r\n\r\n');
      });
      socket.once('data', react).once('end', react);
      socket.once('error', (error) => (isConnected && !signal.aborted ? react() : reject(error)));
      return await promise.finally(() => socket.destroy());
    },
  });
}

/** Checks that the worker, and not another server, answers at a site's edge URL. Never throws. */
export async function checkEdge(
  url: URL,
  {
    timeoutMs,
    ...visitor
  }: { readonly lookup: LookupFunction; readonly hopSecret: string; readonly timeoutMs?: number },
): Promise<PartCheck> {
  return await checkPart('edge', {
    fix: 'stranger',
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    async ask(signal) {
      const answer = await visitEdge(url, EDGE_PATH, { ...visitor, signal });
      if (!isOfWorker(answer)) {
        throw new Error(`${url.host} answers with status ${answer.status}, but it is not the worker`);
      }
      return `the worker answers on ${url.host}`;
    },
  });
}

/** Checks that a site's processing servers reach its preview server, unless that runs on demand. Never throws. */
export async function checkPreview(site: LoadedManifest, deps: PreviewPathDeps): Promise<PartCheck> {
  const name = 'preview';
  if (site.resources.preview.onDemand) {
    return skippedPart(name, `tagyard doctor ${site.site} checks it, and starts its preview server for that`);
  }
  const { problem, fix } = await checkPreviewPath(site, deps, PART_TIMEOUT_MS);
  if (problem !== null) return { name, status: 'failed', detail: `${site.site}: ${problem}`, fix };
  return {
    name,
    status: 'passed',
    detail: `the servers of ${site.site} reach their preview server`,
    fix: null,
  };
}

/** The check of a part that no applied site uses yet. */
export function unusedPart(name: PartName): PartCheck {
  return skippedPart(name, 'no site is applied yet');
}
