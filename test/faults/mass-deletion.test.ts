import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { formatManifest } from '../../gitops/manifest/load.ts';
import type { RunningDaemon } from '../fixtures/gitops/daemon.ts';
import { eventually } from '../helpers/eventually.ts';
import { converged, type Snapshot, type Stage, stage } from './stage.ts';

const SITES = Array.from({ length: 12 }, (_, number) => `site-${number}`);

interface Accident {
  readonly name: string;
  happen(stage: Stage): Promise<void> | void;
  /** What the daemon says of it: in the conditions of its sites, or as the reason why it can't be read. */
  readonly says: RegExp;
  mend(stage: Stage): Promise<void> | void;
}

const git = (stage: Stage, ...args: string[]) =>
  execFileSync('git', ['--git-dir', stage.sitesRepo, ...args], { encoding: 'utf8', stdio: 'pipe' }).trim();
const restore = (stage: Stage) => stage.push(all(stage)).then(() => undefined);
const all = (stage: Stage) =>
  Object.fromEntries(SITES.map((site, number) => [site, stage.manifest(site, number)]));
/** A commit of somebody's own making on the branch: `tree` is what git reads from mktree's standard input. */
function commitTree(stage: Stage, tree: string, parents: readonly string[]): void {
  const id = execFileSync('git', ['--git-dir', stage.sitesRepo, 'mktree'], { input: tree, encoding: 'utf8' });
  const env = {
    GIT_AUTHOR_NAME: 'A',
    GIT_AUTHOR_EMAIL: 'a@x',
    GIT_COMMITTER_NAME: 'A',
    GIT_COMMITTER_EMAIL: 'a@x',
  };
  const args = ['--git-dir', stage.sitesRepo, 'commit-tree', id.trim(), '-m', 'x'];
  const commit = execFileSync('git', [...args, ...parents.flatMap((parent) => ['-p', parent])], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  git(stage, 'update-ref', 'refs/heads/main', commit.trim());
}

let tip = '';
const ACCIDENTS: readonly Accident[] = [
  {
    name: 'all files are deleted in a commit',
    happen: (on) => on.push(Object.fromEntries(SITES.map((site) => [site, null]))).then(() => undefined),
    says: /asks for no site at all/,
    mend: restore,
  },
  {
    name: 'the branch is emptied by a forced push',
    happen: (on) => commitTree(on, '', []),
    says: /asks for no site at all/,
    mend: (on) => void git(on, 'update-ref', 'refs/heads/main', tip),
  },
  {
    name: 'the branch is deleted',
    happen: (on) => void git(on, 'update-ref', '-d', 'refs/heads/main'),
    says: /Ready/,
    mend: (on) => void git(on, 'update-ref', 'refs/heads/main', tip),
  },
  {
    name: 'the repository can’t be read',
    happen: (on) => renameSync(join(on.sitesRepo, 'objects'), join(on.dir, 'objects')),
    says: /git|repository/,
    mend: (on) => renameSync(join(on.dir, 'objects'), join(on.sitesRepo, 'objects')),
  },
  {
    name: 'every manifest is invalid',
    happen: (on) =>
      on
        .push(
          Object.fromEntries(
            SITES.map((site, number) => [
              site,
              formatManifest(on.manifest(site, number)).replace('ports:', 'prots:'),
            ]),
          ),
        )
        .then(() => undefined),
    says: /unknown key/,
    mend: restore,
  },
  {
    name: 'another branch is pushed over it',
    happen: (on) => {
      const entry = git(on, 'ls-tree', tip, '--', 'site-3.yaml');
      commitTree(on, `${entry}\n`, []);
    },
    says: /vanished|rewritten/,
    mend: (on) => void git(on, 'update-ref', 'refs/heads/main', tip),
  },
];

describe.each([
  ['a daemon that runs on', async (daemon: RunningDaemon) => daemon],
  [
    'a daemon that starts again',
    async (daemon: RunningDaemon, on: Stage) => {
      await daemon.kill();
      return on.start();
    },
  ],
] as const)('mass deletion by accident, before %s', (_which, next) => {
  let on: Stage;
  let daemon: RunningDaemon;
  let whole: Snapshot;
  beforeEach(async () => {
    on = await stage();
    await on.push(all(on));
    tip = (await on.repo.head()) ?? '';
    daemon = await on.start();
    await eventually(async () => expect((await daemon.figures()).ready).toBe(SITES.length));
    await converged(daemon);
    // What the next daemon knows of the sites; it is written a little later than they are ready.
    await eventually(
      () => {
        const { sites } = JSON.parse(readFileSync(join(on.dir, 'state', 'state.json'), 'utf8'));
        expect(sites.filter(({ ready }: { ready: boolean }) => ready)).toHaveLength(SITES.length);
      },
      { timeoutMs: 60_000 },
    );
    whole = on.snapshot();
  });
  afterEach(async () => {
    await daemon?.kill();
    await on.close();
  });

  it.each(ACCIDENTS)('removes nothing where $name, and goes on when it is mended', async (accident) => {
    let writes = 0;
    on.gate.watch(({ kind }) => {
      if (kind === 'world') writes += 1;
      return false;
    });
    await accident.happen(on);
    daemon = await next(daemon, on);
    // Several passes: the second confirms what the first one saw.
    for (let round = 0; round < 3; round += 1) {
      const before = await daemon.figures();
      await daemon.call('POST', '/sync');
      await eventually(async () => {
        const after = await daemon.figures();
        if (after.lastError === null) expect(after.passes).toBeGreaterThan(before.passes);
      });
    }
    const { sites } = await daemon.sites();
    const { lastError } = await daemon.figures();
    expect(
      [lastError ?? '', ...sites.map(({ message, reason }) => `${reason} ${message}`)].join('\n'),
    ).toMatch(accident.says);
    expect(writes).toBe(0);
    expect(on.snapshot()).toEqual(whole);

    await accident.mend(on);
    await daemon.call('POST', '/sync');
    await eventually(async () => expect((await daemon.figures()).ready).toBe(SITES.length), {
      timeoutMs: 60_000,
    });
    await converged(daemon);
    expect(writes).toBe(0);
    expect(on.snapshot()).toEqual(whole);
  });
});
