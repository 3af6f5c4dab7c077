import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { z } from 'zod';
import { formatManifest } from '../../sites/manifest/load.ts';
import { readManifest } from '../../sites/manifest/read.ts';
import { eventually } from '../support/eventually.ts';
import type { RunningDaemon } from '../support/gitops/daemon.ts';
import { hostileManifests } from '../support/hostile-manifests.ts';
import type { Suite } from './bench.ts';
import { type TestBed, testBed } from './gitops-bed.ts';

const LIMIT_MS = 50;
const LIMIT_SECONDS = 2;
const BROKEN = 3_000;
const CONTESTED = 800;

/** What broken manifests cost other sites: how long they block the event loop, and how long they delay a change. */
export const brokenManifests: Suite = async (bench) => {
  const texts = hostileManifests();
  // Warms up: the first text starts the parser's thread, which a daemon does only once.
  for (const { text } of texts.slice(0, 2)) await blockedBy(text);
  await bench('worst manifest of up to 256 KiB: blocked loop, against 50 ms', {
    unit: '×',
    times: 3,
    run: async () => {
      let worst = 0;
      for (const { text } of [...texts, ...hostileManifests(16_000)]) {
        worst = Math.max(worst, await blockedBy(text));
      }
      return worst / LIMIT_MS;
    },
  });
  await using bed = await testBed();
  await bed.push(0, 10);
  await using daemon = await bed.start();
  await applied(daemon, await bed.change(1));
  let round = 0;
  /** Commits these files with a change of the site `site-1`, and measures the time until that change is applied. */
  const delay = async (files: (round: number) => readonly File[]) => {
    round += 1;
    const good = formatManifest(bed.manifest(1, { name: `Round ${round}` }));
    const revision = commit(bed, [...files(round), ['site-1.yaml', good]]);
    const started = performance.now();
    await applied(daemon, revision);
    return (performance.now() - started) / 1_000 / LIMIT_SECONDS;
  };
  const many = (count: number, file: (number: number) => File) =>
    Array.from({ length: count }, (_, number) => file(number));
  const limit = { unit: '×', times: 3 };

  await bench(`${BROKEN} new broken manifests: another site applied, against 2 s`, {
    ...limit,
    run: () => delay((at) => many(BROKEN, (number) => [`broken-${at}-${number}.yaml`, `site: [${number}`])),
  });
  // These sites are suspended: the daemon reads and plans them like others, but applies nothing.
  const rival = (number: number, port: number): File => {
    const ports = { processing: port, preview: port + 1 };
    const manifest = bed.manifest(2_000 + number, { site: `rival-${number}`, suspend: true, ports });
    return [`rival-${number}.yaml`, formatManifest(manifest)];
  };
  await bench(`${CONTESTED} manifests on one port: another site applied, against 2 s`, {
    ...limit,
    run: () => delay((at) => many(CONTESTED, (number) => rival(number, 50_000 + 2 * at))),
  });
  commit(
    bed,
    many(CONTESTED, (number) => [`rival-${number}.yaml`, null]),
  );
  const valid = (number: number): File => [
    `valid-${number}.yaml`,
    formatManifest({ ...bed.manifest(3_000 + number, { suspend: true }), site: `valid-${number}` }),
  ];
  await bench(`${BROKEN} valid manifests: another site applied, against 2 s (control)`, {
    ...limit,
    times: 1,
    run: () => delay(() => many(BROKEN, valid)),
  });
  await bench(`${BROKEN} manifests that were valid until now: another site applied, against 2 s`, {
    ...limit,
    times: 1, // only the first run finds them valid
    run: () => delay((at) => many(BROKEN, (number) => [`valid-${number}.yaml`, `site: [${at}`])),
  });
};

/** Milliseconds for which the text kept the event loop busy, without the time in which the loop was idle. */
async function blockedBy(text: string): Promise<number> {
  await new Promise(setImmediate);
  const before = performance.eventLoopUtilization();
  await readManifest(text, 'acme-shop.yaml');
  return performance.eventLoopUtilization(before).active;
}

type File = readonly [path: string, text: string | null];

/** Makes one commit; `null` deletes the file. Returns the revision. */
function commit(bed: TestBed, files: readonly File[]): string {
  const changes = files.map(([path, text]) =>
    text === null ? `D ${path}\n` : `M 100644 inline ${path}\ndata ${Buffer.byteLength(text)}\n${text}\n`,
  );
  const head = 'commit refs/heads/main\ncommitter Op <op@example.test> 2000000000 +0000\ndata 1\nx\n';
  const input = `${head}from refs/heads/main^0\n${changes.join('')}\ndone\n`;
  const cwd = join(bed.dir, 'sites.git');
  const { status, stderr } = spawnSync('git', ['fast-import', '--quiet', '--done'], { cwd, input });
  if (status !== 0) throw new Error(`git fast-import: ${stderr}`);
  return spawnSync('git', ['rev-parse', 'main'], { cwd, encoding: 'utf8' }).stdout.trim();
}

async function applied(daemon: RunningDaemon, revision: string): Promise<void> {
  await eventually(
    async () => {
      const { body } = await daemon.call('GET', '/sites/site-1');
      const status = z.object({ applied: z.nullable(z.string()), ready: z.boolean() }).parse(body);
      if (status.applied !== revision || !status.ready) throw new Error(`${status.applied} is applied`);
    },
    { timeoutMs: 600_000, intervalMs: 20 },
  );
}
