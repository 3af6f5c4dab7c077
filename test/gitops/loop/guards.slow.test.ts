import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { git } from '../../../sites/repo/git/git.ts';
import { eventually } from '../../support/eventually.ts';
import { type LoopOptions, type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { SHARED, TARGETS } from '../../support/gitops/targets.ts';

let daemon: MemoryDaemon;
afterEach(() => daemon.close());

/** A daemon with these sites applied. */
async function applied(names: readonly string[], options: LoopOptions = {}, extra = {}) {
  daemon = await memoryDaemon(options);
  for (const [number, name] of names.entries()) {
    await daemon.push(name, daemon.manifest(name, number, extra));
  }
  for (const name of names) await daemon.reaches(name, 'Ready');
}
const nothingRemoved = (names: readonly string[]) =>
  expect(names.filter((name) => daemon.objectCount(name) === 0)).toEqual([]);

describe('sites whose removal may be an accident stay', () => {
  const sites = ['one', 'two', 'three'];

  test.each([
    ['all files deleted', async () => void (await Promise.all(sites.map((s) => daemon.push(s, null))))],
    [
      'a branch that never had them',
      async () => {
        const args = ['hash-object', '-w', '-t', 'tree', '/dev/null'];
        const tree = (await git(daemon.sitesRepo, args)).toString().trim();
        const author = ['-c', 'user.name=Op', '-c', 'user.email=op@example.test'];
        const commit = await git(daemon.sitesRepo, [...author, 'commit-tree', tree, '-m', 'Empty']);
        await git(daemon.sitesRepo, ['update-ref', 'refs/heads/main', commit.toString().trim()]);
      },
    ],
    [
      'every manifest invalid',
      async () => void (await Promise.all(sites.map((s) => daemon.push(s, 'version: 1\nsite: {}\n')))),
    ],
  ])('with %s', async (_what, accident) => {
    await applied(sites);
    await accident();
    await daemon.fullPass();
    nothingRemoved(sites);
    expect(daemon.applied.filter(({ op }) => op === 'delete')).toEqual([]);
  });

  test('with the branch deleted, which is not an empty desired state', async () => {
    await applied(sites);
    const revision = await daemon.repo.head();
    await git(daemon.sitesRepo, ['update-ref', '-d', 'refs/heads/main']);
    daemon.loop.sync();
    await eventually(() => expect(daemon.loop.lastError).not.toBeNull());
    await daemon.fullPass();
    nothingRemoved(sites);
    const why = expect.stringContaining('the branch main of the sites repository is gone');
    expect((await daemon.call('GET', '/sites')).body).toMatchObject({
      problem: why,
      sites: sites.map(() => ({ ready: true, message: why })),
    });
    expect((await daemon.call('GET', '/sites/one')).body).toMatchObject({
      reason: 'SourceUnavailable',
      message: why,
    });

    expect((await daemon.call('GET', '/health')).body.checks).toContainEqual(
      expect.objectContaining({ name: 'sites_repo', status: 'failed', detail: why }),
    );

    await git(daemon.sitesRepo, ['update-ref', 'refs/heads/main', revision ?? '']);
    daemon.loop.sync();
    await eventually(async () =>
      expect((await daemon.call('GET', '/sites')).body).toMatchObject({
        problem: null,
        sites: sites.map(() => ({ ready: true, message: '' })),
      }),
    );
  });

  test('with the history rewritten, until the removal is approved; other sites are created meanwhile', async () => {
    await applied(['keep']);
    const before = await daemon.repo.head();
    await daemon.push('gone', daemon.manifest('gone', 7));
    await daemon.reaches('gone', 'Ready');
    await git(daemon.sitesRepo, ['update-ref', 'refs/heads/main', before ?? '']);
    await daemon.push('fresh', daemon.manifest('fresh', 8));
    await daemon.reaches('fresh', 'Ready');
    expect(await daemon.reaches('gone', 'Blocked')).toMatchObject({
      message: expect.stringContaining('rewritten'),
    });
    nothingRemoved(['gone']);
    const { body } = await daemon.call('POST', '/plan', {});
    expect(body.blocked.map(({ reason }: { reason: string }) => reason)).toEqual([
      'history_rewritten',
      'absence_unconfirmed',
    ]);
    await daemon.call('POST', '/approve', { checksum: body.checksum });
    await daemon.reaches('gone', 'Removed');
    nothingRemoved(['keep', 'fresh']);
  });

  test('in the first pass after the state was lost', async () => {
    await applied(['one']);
    await daemon.call('POST', '/deprovision', { site: 'one' });
    const order: string[] = [];
    daemon.control.before = ({ op }) => void order.push(`${op} at pass ${daemon.loop.passes}`);
    await daemon.restart({ known: null });
    await daemon.reaches('one', 'Removed');
    expect(order).not.toContain('delete at pass 0');
  });
});

describe('a site whose file is removed, moved or changed', () => {
  test('is removed: the commit that deleted the file confirms it', async () => {
    await applied(['one', 'two']);
    await daemon.push('one', null);
    await daemon.reaches('one', 'Removed');
    expect(daemon.objectCount('one')).toBe(0);
    nothingRemoved(['two']);
  });

  test.each([
    ['deleted', () => daemon.push('one', null)],
    [
      'moved to another host',
      () => daemon.push('one', daemon.manifest('one', 0, { protect: true, host: 'tag-2' })),
    ],
    ['a tombstone', () => daemon.push('one', daemon.manifest('one', 0, { protect: true, state: 'absent' }))],
  ])('stays while it is protected: %s', async (_what, push) => {
    await applied(['one', 'two'], {}, { protect: true });
    await push();
    expect(await daemon.reaches('one', 'Blocked')).toMatchObject({
      message: expect.stringContaining('protect: false'),
    });
    nothingRemoved(['one']);
    const { body } = await daemon.call('POST', '/plan', {});
    await daemon.call('POST', '/approve', { checksum: body.checksum });
    await daemon.fullPass();
    nothingRemoved(['one']);
  });

  test.each([
    ['a tombstone for another host', { host: 'tag-2', state: 'absent' }],
    ['a tombstone', { state: 'absent' }],
    ['deleted', null],
  ] as const)('is removed with its visitors’ data, unless it is protected: %s', async (_what, extra) => {
    await applied(['one', 'two']);
    await daemon.push('one', extra && daemon.manifest('one', 0, extra));
    await daemon.reaches('one', 'Removed');
    nothingRemoved(['two']);
    const removals = daemon.applied.filter(({ op }) => op === 'delete');
    expect(removals.map(({ ended }) => ended)).toEqual(TARGETS.map(() => true));
  });

  test.each([
    ['after that host has taken its names over', true],
    ['after an approval', false],
  ])('keeps its visitors’ data when it moves to another host, %s', async (_what, taken) => {
    await applied(['one', 'two']);
    await daemon.push('one', daemon.manifest('one', 0, { host: 'tag-2' }));
    await daemon.reaches('one', 'Blocked');
    const { body } = await daemon.call('POST', '/plan', {});
    expect(body.blocked).toMatchObject([
      { reason: 'not_taken_over', detail: expect.stringContaining('tag-2') },
    ]);
    expect(daemon.objectCount('one')).toBe(TARGETS.length);
    if (taken) {
      for (const target of SHARED) {
        for (const [key, { mark, hash }] of daemon.world(target)) {
          daemon.world(target).set(key, { mark: mark?.replace('tag-1 one', 'tag-2 one') ?? null, hash });
        }
      }
      daemon.loop.sync();
    } else await daemon.call('POST', '/approve', { checksum: body.checksum });
    await daemon.reaches('one', 'Removed');
    nothingRemoved(['two']);
    const removals = daemon.applied.filter(({ op }) => op === 'delete');
    expect(removals.map(({ target, ended }) => [target, ended])).toEqual(
      TARGETS.filter((target) => !taken || !SHARED.has(target))
        .map((target) => [target, undefined])
        .toReversed(),
    );
  });

  test('keeps its remaining names for the new host if it is moved during the drain of its removal', async () => {
    await applied(['one', 'two'], { drainSeconds: 600 });
    await daemon.push('one', null);
    await eventually(() => expect(daemon.loop.status('one')?.withdrawnAt).toBeDefined());
    await daemon.push('one', daemon.manifest('one', 0, { host: 'tag-2' }));
    expect(await daemon.reaches('one', 'Blocked')).toMatchObject({
      message: expect.stringContaining('one on tag-2'),
    });
    const removed = daemon.applied.flatMap(({ target, op }) => (op === 'delete' ? [target] : []));
    expect(removed).toEqual(['dns']);
  });

  test('counts as moved even if the file became invalid before this host read the move', async () => {
    await applied(['one', 'two']);
    const moved = formatManifest(daemon.manifest('one', 0, { host: 'tag-2' }));
    const commits = [moved, `${moved}unknown: 1\n`].map(
      (text, at) =>
        `commit refs/heads/main\ncommitter Op <op@example.test> 1 +0000\ndata 0\n${at === 0 ? 'from refs/heads/main^0\n' : ''}M 100644 inline one.yaml\ndata ${Buffer.byteLength(text)}\n${text}\n`,
    );
    await git(daemon.sitesRepo, ['fast-import', '--quiet', '--done'], { input: `${commits.join('')}done\n` });
    await daemon.fullPass();
    expect(await daemon.reaches('one', 'Blocked')).toMatchObject({
      message: expect.stringContaining('one on tag-2'),
    });
  });

  test('keeps its names until the new host takes them over, also when all sites move', async () => {
    const sites = ['one', 'two', 'three'];
    await applied(sites);
    for (const [number, site] of sites.entries())
      await daemon.push(site, daemon.manifest(site, number, { host: 'tag-2' }));
    await daemon.fullPass();
    for (const site of sites)
      expect(await daemon.reaches(site, 'Blocked')).toMatchObject({
        message: expect.stringMatching(/^the new host has not taken over .*one on tag-2/),
      });
    const { body } = await daemon.call('POST', '/plan', {});
    expect(body.blocked.map(({ reason }: { reason: string }) => reason)).toEqual([
      'not_taken_over',
      'empty_desired_state',
      'too_many_sites',
    ]);
  });

  test('takes over what another host made for it, but not for other sites, and not while it is protected', async () => {
    await applied(['two']);
    const mark = (site: string) => `tgy1 test tag-2 ${site} 00112233`;
    for (const target of SHARED)
      daemon.world(target).set('one.example.net', { mark: mark('one'), hash: 'x' });
    await daemon.push('one', daemon.manifest('one', 1, { protect: true }));
    expect(await daemon.reaches('one', 'Blocked')).toMatchObject({
      message: expect.stringContaining('protect: false'),
    });
    expect(daemon.objectCount('one')).toBe(0);
    await daemon.push('one', daemon.manifest('one', 1));
    await daemon.reaches('one', 'Ready');
    expect(daemon.objectCount('one')).toBe(TARGETS.length);
    for (const target of SHARED)
      daemon.world(target).set('fresh.example.net', { mark: mark('old'), hash: 'x' });
    await daemon.push('fresh', daemon.manifest('fresh', 3));
    await daemon.reaches('fresh', 'Conflict');
    expect(daemon.world('dns').get('fresh.example.net')).toEqual({ mark: mark('old'), hash: 'x' });
  });

  test('keeps its visitors’ data when its manifest drops one of its names', async () => {
    await applied(['one'], {}, { customDomains: ['m.one.example'] });
    await daemon.push('one', daemon.manifest('one', 0));
    await eventually(() => expect(daemon.objectCount('one')).toBe(TARGETS.length));
    expect(daemon.applied.filter(({ ended }) => ended)).toEqual([]);
  });
});

describe('the freeze file', () => {
  test('stops all changes and shows its text; without the file they go on', async () => {
    await applied(['one']);
    await writeFile(join(daemon.dir, 'freeze'), 'migration\n');
    await daemon.push('two', daemon.manifest('two', 2));
    expect(await daemon.reaches('two', 'Frozen')).toMatchObject({
      message: expect.stringContaining('migration'),
    });
    expect(daemon.objectCount('two')).toBe(0);
    expect((await daemon.call('POST', '/plan', {})).body.blocked).toMatchObject([{ reason: 'frozen' }]);
    await rm(join(daemon.dir, 'freeze'));
    await daemon.call('POST', '/sync');
    await daemon.reaches('two', 'Ready');
  });
});

describe('the policy upsert_only', () => {
  test('creates and updates, but deletes nothing: the removal of a site is blocked', async () => {
    await applied(['one', 'two'], { policy: 'upsert_only' });
    await daemon.push('two', daemon.manifest('two', 1, { name: 'Renamed' }));
    await daemon.call('POST', '/deprovision', { site: 'one' });
    expect(await daemon.reaches('one', 'Blocked')).toMatchObject({
      message: expect.stringContaining('upsert_only'),
    });
    await daemon.reaches('two', 'Ready');
    nothingRemoved(['one', 'two']);
  });
});

describe('drift', () => {
  const edit = (key = 'one.example.net') => {
    const thing = daemon.world('kv').get(key);
    if (thing === undefined) throw new Error(`${key} isn't there`);
    daemon.world('kv').set(key, { ...thing, hash: 'written by another program' });
  };
  const isEdited = () => daemon.world('kv').get('one.example.net')?.hash === 'written by another program';

  test('is repaired', async () => {
    await applied(['one']);
    edit();
    daemon.loop.sync();
    await eventually(() => expect(isEdited()).toBe(false));
    await daemon.reaches('one', 'Ready');
  });

  test.each([
    ['warn', 'Drifted', 1],
    ['ignore', 'Ready', 0],
  ] as const)(
    'is not repaired with the mode %s, but a change of the manifest is applied',
    async (mode, reason, reported) => {
      await applied(['one'], { drift: { kv: mode } });
      edit();
      await daemon.fullPass();
      await daemon.reaches('one', reason);
      await daemon.fullPass();
      expect(isEdited()).toBe(true);
      expect((await daemon.call('POST', '/plan', {})).body).toMatchObject({ changes: [] });
      expect((await daemon.call('POST', '/plan', {})).body.blocked).toHaveLength(reported);
      await daemon.push('one', daemon.manifest('one', 0, { name: 'Renamed' }));
      await eventually(() => expect(isEdited()).toBe(false));
    },
  );

  test('after three repairs is a repair loop and is no longer repaired', async () => {
    await applied(['one']);
    for (const time of [1, 2, 3]) {
      edit();
      daemon.loop.sync();
      await eventually(() => expect(isEdited(), `repair ${time}`).toBe(false));
      await daemon.reaches('one', 'Ready');
    }
    edit();
    daemon.loop.sync();
    expect(await daemon.reaches('one', 'RepairLoop')).toMatchObject({
      message: expect.stringContaining('kv one.example.net'),
    });
    await daemon.fullPass();
    expect(isEdited()).toBe(true);
  });
});

describe('a suspended site', () => {
  test('is not changed, and lists the pending changes', async () => {
    await applied(['one']);
    await daemon.push('one', formatManifest(daemon.manifest('one', 0, { suspend: true, name: 'Renamed' })));
    expect(await daemon.reaches('one', 'Suspended')).toMatchObject({
      message: expect.stringContaining('kv of one.example.net'),
    });
    await daemon.push('one', daemon.manifest('one', 0, { name: 'Renamed' }));
    await daemon.reaches('one', 'Ready');
  });
});
