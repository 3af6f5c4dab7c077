import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { DesiredStateReader } from '../../../gitops/desired/reader.ts';
import { formatManifest } from '../../../gitops/manifest/load.ts';
import { encryptSecret } from '../../../gitops/manifest/secrets.ts';
import { initSitesRepo } from '../../../gitops/sites-repo/mirror.ts';
import { openSitesRepo } from '../../../gitops/sites-repo/sites-repo.ts';
import { manifestInput } from '../../support/manifest.ts';

let dir: string;
let bare: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tagyard-broken-'));
  bare = join(dir, 'sites.git');
  await initSitesRepo(bare);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(dir, { recursive: true, force: true });
});

/** Commits these files at once. Resolves to the commit's id. */
function commit(files: ReadonlyMap<string, string>, from = ''): string {
  const parts = [...files].map(
    ([path, text]) => `M 100644 inline ${path}\ndata ${Buffer.byteLength(text)}\n${text}\n`,
  );
  const head = 'commit refs/heads/main\ncommitter Op <op@example.test> 1 +0000\ndata 1\nx\n';
  const input = `${head}${from && `from ${from}\n`}${parts.join('')}\ndone\n`;
  execFileSync('git', ['fast-import', '--quiet', '--done'], { cwd: bare, input });
  return execFileSync('git', ['rev-parse', 'main'], { cwd: bare, encoding: 'utf8' }).trim();
}

/** How many git processes the work starts. A `git` before the real git in PATH writes a line for each. */
async function processesOf(work: () => Promise<unknown>): Promise<number> {
  const bin = join(dir, 'bin');
  const calls = join(dir, 'calls');
  await mkdir(bin, { recursive: true });
  const script = `#!/bin/sh\necho x >> '${calls}'\nPATH='${process.env.PATH}' exec git "$@"\n`;
  await writeFile(join(bin, 'git'), script, { mode: 0o755 });
  await writeFile(calls, '');
  vi.stubEnv('PATH', `${bin}:${process.env.PATH}`);
  await work();
  vi.unstubAllEnvs();
  return (await readFile(calls, 'utf8')).split('\n').length - 1;
}

test.each<[string, (number: number) => string]>([
  ['new', (number) => `broken-${number}`],
  ['until now valid', (number) => `site-${number}`],
])('many broken manifests that are %s need as many git processes as a few', async (_what, nameOf) => {
  const ageIdentity = await generateIdentity();
  const containerConfig = await encryptSecret(await identityToRecipient(ageIdentity), 'aWQ9R1RNLVg=');
  const counts: number[] = [];
  for (const count of [10, 90]) {
    const names = Array.from({ length: 100 }, (_, number) => `site-${number}`);
    const valid = new Map(
      names.map((name, number) => [
        `${name}.yaml`,
        formatManifest(manifestInput(name, number, { containerConfig })),
      ]),
    );
    execFileSync('git', ['update-ref', '-d', 'refs/heads/main'], { cwd: bare });
    const first = commit(valid);
    const broken = Array.from({ length: count }, (_, number) => [`${nameOf(number)}.yaml`, 'x: [']);
    const second = commit(new Map(broken as [string, string][]), first);
    const repo = await openSitesRepo({ url: bare, cacheDir: dir });
    const reader = new DesiredStateReader(repo, { host: 'tag-1', ageIdentity });
    const fresh = new DesiredStateReader(repo, { host: 'tag-1', ageIdentity });
    await reader.read(first);
    counts.push(await processesOf(() => reader.read(second)));
    counts.push(await processesOf(() => fresh.read(second)));
    for (const one of [reader, fresh]) {
      const { sites } = await one.read(second);
      const stalled = [...sites.values()].filter((site) => site.stalled?.reason === 'InvalidManifest');
      expect(stalled).toHaveLength(count);
      expect([...sites.values()].filter(({ manifest }) => manifest !== null)).toHaveLength(100);
    }
  }
  const [running = 0, start = 0, runningMany = 0, startMany = 0] = counts;
  expect([runningMany, startMany]).toEqual([running, start]);
  expect(running).toBeGreaterThan(0);
});
