import { spawnSync } from 'node:child_process';
import { mkdtempSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { EMULATOR_SCRIPT, EMULATOR_TOKEN, EMULATOR_ZONE } from '../support/cloudflare/emulator.ts';
import { eventually } from '../support/eventually.ts';
import type { RunningDaemon } from '../support/gitops/daemon.ts';
import type { Bench, Suite } from './bench.ts';
import { type TestBed, testBed } from './gitops-bed.ts';

const namespaces = z.object({ result: z.array(z.object({ id: z.string() })) });
const POLL = { timeoutMs: 600_000, intervalMs: 20 };

/** The reconciler alone, with git on disk. Cloudflare's emulator and the daemon each have a process of their own. */
export const gitops: Suite = async (bench) => {
  await provisions(bench);
  await naiveLoop(bench, 100);
  await passes(bench, 1_000);
  await passes(bench, 10_000);
};

/** Measures `count` sites in one zone: the first provision, a pass without changes, one change, and a cold start. */
async function passes(bench: Bench, count: number): Promise<void> {
  await using bed = await testBed();
  const name = (what: string) => `${what}, ${count.toLocaleString('en')} sites`;
  {
    const revision = await bed.push(0, count);
    await using daemon = await bed.start();
    const { taken } = await bench(name('first provision, wildcard route'), {
      unit: 's',
      run: () => seconds(() => ready(daemon, count, revision)),
    }).then(async () => ({ taken: await bed.calls() }));
    await bench(name('  calls'), { unit: 'calls', run: () => taken.length });
    await settled(daemon, bed);
    await quietPass(bench, name('no-op pass'), daemon, bed);

    await bench(name('one site changed: push to applied'), {
      unit: 's',
      times: 3,
      run: async () => {
        const next = await bed.change(7);
        return seconds(() => applied(daemon, 'site-7', next));
      },
    });
    await settled(daemon, bed);
    await planReady(bench, name, daemon, bed);
    await bed.calls();
    const next = await bed.change(7);
    await applied(daemon, 'site-7', next);
    await settled(daemon, bed);
    const all = await bed.calls();
    await bench(name('  calls, with the observation after it'), { unit: 'calls', run: () => all.length });
    const { peakMiB } = await daemon.figures();
    await bench(name('  peak memory so far'), { unit: 'MiB', run: () => peakMiB });
  }
  const started = performance.now();
  await using again = await bed.start();
  await bench(name('cold start to the end of its first pass'), {
    unit: 's',
    run: async () => {
      await eventually(async () => {
        const { passes: done, ready: sites } = await again.figures();
        if (done === 0 || sites < count) throw new Error(`${done} passes, ${sites} ready`);
      }, POLL);
      return (performance.now() - started) / 1000;
    },
  });
  await settled(again, bed);
  await quietPass(bench, name('no-op pass after a restart'), again, bed);
}

/**
 * Measures the time from the update of the branch until the site's plan exists, by the daemon's log. The control is the
 * lower bound: the same calls, all at once, and the git fetch that a remote repository would need.
 */
async function planReady(
  bench: Bench,
  name: (what: string) => string,
  daemon: RunningDaemon,
  bed: TestBed,
): Promise<void> {
  const log = daemon.follow('site-7');
  const planned = await bench(name('one site changed: push to plan ready'), {
    unit: 'ms',
    times: 9,
    run: async () => {
      const revision = await bed.change(7);
      const { mtimeMs } = statSync(join(bed.dir, 'sites.git', 'refs', 'heads', 'main'));
      let at: number | null = null;
      for await (const line of { [Symbol.asyncIterator]: () => ({ next: () => log.next() }) }) {
        if (line.message === 'applying' && line.revision === revision) at = line.at;
        // Don't make the next change before this one is applied; otherwise one plan would contain both.
        if (at !== null && line.reason === 'Ready') return at - mtimeMs;
      }
      throw new Error('the daemon ended');
    },
  });
  await log.return?.();
  await settled(daemon, bed);
  const mirror = join(bed.dir, 'mirror.git');
  spawnSync('git', ['clone', '--quiet', '--mirror', join(bed.dir, 'sites.git'), mirror]);
  const { url, account, zoneId } = bed.cloudflare;
  const headers = { authorization: `Bearer ${EMULATOR_TOKEN}` };
  const kv = `/accounts/${account}/storage/kv/namespaces`;
  const { result: spaces } = namespaces.parse(await (await fetch(`${url}${kv}`, { headers })).json());
  const reads = [
    `/zones/${zoneId}/workers/routes`,
    ...['', '-origin', '-preview'].map(
      (role) => `/zones/${zoneId}/dns_records?name=site-7${role}.${EMULATOR_ZONE}`,
    ),
    ...spaces.map(({ id }) => `${kv}/${id}/keys?prefix=site-7`),
  ];
  const control = await bench('  its calls and a git fetch alone', {
    unit: 'ms',
    times: 5,
    run: async () => {
      await bed.change(8);
      await settled(daemon, bed);
      const took = await seconds(async () => {
        spawnSync('git', ['--git-dir', mirror, 'fetch', '--quiet', 'origin']);
        await Promise.all(reads.map(async (path) => (await fetch(`${url}${path}`, { headers })).text()));
      });
      return took * 1000;
    },
  });
  await bench('  more than these alone (at most 300)', {
    unit: 'ms',
    run: () => planned.median - control.median,
  });
  await settled(daemon, bed);
}

async function quietPass(bench: Bench, name: string, daemon: RunningDaemon, bed: TestBed): Promise<void> {
  const passAgain = async () => {
    const before = await daemon.figures();
    await daemon.call('POST', '/sync');
    return await eventually(async () => {
      const after = await daemon.figures();
      if (after.passes === before.passes) throw new Error('no pass yet');
      return after.cpuSeconds - before.cpuSeconds;
    }, POLL);
  };
  await passAgain();
  await settled(daemon, bed);
  await bed.calls();
  await bench(name, { unit: 's CPU', times: 3, run: passAgain });
  const taken = await bed.calls();
  await bench('  calls a pass', { unit: 'calls', run: () => taken.length / 3 });
  const { residentMiB } = await daemon.figures();
  await bench('  resident memory', { unit: 'MiB', run: () => residentMiB });
}

/** Compares a hundred concurrent requests with a hundred sequential commits by git's plumbing. */
async function provisions(bench: Bench): Promise<void> {
  const count = 100;
  await using bed = await testBed(true);
  await using daemon = await bed.start();
  const control = await bench('100 × git commit-tree + update-ref', {
    unit: 's',
    times: 3,
    run: () => plumbing(bed.dir, count),
  });
  const bodies = Array.from({ length: count }, (_, number) => bed.manifest(number));
  const posted = await bench('100 × POST /provision at once', {
    unit: 's',
    run: () =>
      seconds(async () => {
        const answers = await Promise.all(bodies.map((body) => daemon.call('POST', '/provision', body)));
        const refused = answers.filter(({ status }) => status !== 202);
        if (refused.length > 0) throw new Error(JSON.stringify(refused[0]));
      }),
  });
  await bench('  against the control (at most 3)', { unit: '×', run: () => posted.median / control.median });
  const head = await bed.repo.head();
  await bench('  commits lost (0)', {
    unit: 'commits',
    run: async () => {
      const histories = await bed.repo.read(head ?? '');
      return count - histories.length;
    },
  });
  await bench('  until all are applied', { unit: 's', run: () => seconds(() => ready(daemon, count, head)) });
}

/** The simplest script: for each site, read its file with git and create its eight resources with one call each. */
async function naiveLoop(bench: Bench, count: number): Promise<void> {
  await using bed = await testBed();
  await bed.push(0, count);
  const { url, account, zoneId } = bed.cloudflare;
  const call = async (method: string, path: string, body: unknown) => {
    const headers = { authorization: `Bearer ${EMULATOR_TOKEN}`, 'content-type': 'application/json' };
    const answer = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
    return answer.json();
  };
  const spaces = z.object({ result: z.array(z.object({ id: z.string() })) }).parse(
    await (
      await fetch(`${url}/accounts/${account}/storage/kv/namespaces`, {
        headers: { authorization: `Bearer ${EMULATOR_TOKEN}` },
      })
    ).json(),
  ).result;
  await bed.calls();
  await bench(`a loop of one call a resource, ${count} sites`, {
    unit: 's',
    run: () =>
      seconds(async () => {
        for (let number = 0; number < count; number += 1) {
          const name = `site-${number}`;
          spawnSync('git', ['--git-dir', join(bed.dir, 'sites.git'), 'show', `main:${name}.yaml`]);
          for (const { id } of spaces) {
            const pair = { key: name, value: '{}' };
            await call('PUT', `/accounts/${account}/storage/kv/namespaces/${id}/bulk`, [pair]);
          }
          const pattern = `${name}.${EMULATOR_ZONE}/*`;
          await call('POST', `/zones/${zoneId}/workers/routes`, { pattern, script: EMULATOR_SCRIPT });
          for (const host of [name, `${name}-origin`, `${name}-preview`]) {
            const record = { type: 'A', name: host, content: '198.51.100.4' };
            await call('POST', `/zones/${zoneId}/dns_records`, record);
          }
        }
      }),
  });
  const taken = await bed.calls();
  await bench('  calls', { unit: 'calls', run: () => taken.length });
}

/** What a script would do for each site: commit a tree and move the branch. */
function plumbing(dir: string, count: number): number {
  const path = join(mkdtempSync(join(dir, 'plain-')), 'plain.git');
  const git = (args: string[], input?: string) => {
    const env = {
      ...process.env,
      GIT_DIR: path,
      GIT_AUTHOR_NAME: 'A',
      GIT_AUTHOR_EMAIL: 'a@example.net',
      GIT_COMMITTER_NAME: 'A',
      GIT_COMMITTER_EMAIL: 'a@example.net',
    };
    const done = spawnSync('git', args, { env, ...(input === undefined ? {} : { input }), encoding: 'utf8' });
    if (done.status !== 0) throw new Error(`git ${args[0]}: ${done.stderr}`);
    return done.stdout.trim();
  };
  git(['init', '--quiet', '--bare', path]);
  const blob = git(['hash-object', '-w', '--stdin'], 'version: 1\n');
  const tree = git(['mktree'], `100644 blob ${blob}\tsite.yaml\n`);
  let parent = git(['commit-tree', tree, '-m', 'first']);
  const started = performance.now();
  for (let number = 0; number < count; number += 1) {
    const commit = git(['commit-tree', tree, '-p', parent, '-m', `site ${number}`]);
    git(['update-ref', 'refs/heads/main', commit]);
    parent = commit;
  }
  return (performance.now() - started) / 1000;
}

async function ready(daemon: RunningDaemon, count: number, revision: string | null): Promise<void> {
  await eventually(async () => {
    const { ready: sites } = await daemon.figures();
    if (sites < count) throw new Error(`${sites} of ${count} are ready for ${revision}\n${daemon.output()}`);
  }, POLL);
}

async function applied(daemon: RunningDaemon, site: string, revision: string): Promise<void> {
  await eventually(async () => {
    const { body } = await daemon.call('GET', `/sites/${site}`);
    const status = z.object({ applied: z.nullable(z.string()), ready: z.boolean() }).parse(body);
    if (status.applied !== revision || !status.ready) throw new Error(`${status.applied} is applied`);
  }, POLL);
}

/** Waits until no pass is running: for five polls, the numbers of passes and calls stay the same. */
async function settled(daemon: RunningDaemon, bed: TestBed): Promise<void> {
  let last = '';
  let same = 0;
  const seen: string[] = [];
  await eventually(
    async () => {
      seen.push(...(await bed.calls()));
      const now = `${(await daemon.figures()).passes} ${seen.length}`;
      same = now === last ? same + 1 : 0;
      last = now;
      if (same < 5) throw new Error('still at work');
    },
    { ...POLL, intervalMs: 100 },
  );
  bed.putBack(seen);
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1000;
}
