import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { type Operator, operator } from '../../support/operator.ts';

let daemon: MemoryDaemon;
let op: Operator;
let before: number;
beforeEach(async () => {
  daemon = await memoryDaemon();
  await daemon.push('one', daemon.manifest('one', 0));
  await daemon.push('two', daemon.manifest('two', 1));
  await daemon.reaches('one', 'Ready');
  await daemon.reaches('two', 'Ready');
  before = daemon.objectCount('one');
  op = await operator(daemon.sitesRepo);
});
afterEach(async () => {
  op[Symbol.dispose]();
  await daemon.close();
});

const at = (...path: string[]) => join(op.clone, ...path);
/** Moves the manifest in the clone to this path, whose folder must exist. */
const move = (to: string) => renameSync(at('one.yaml'), at(to));
const folder = (name: string) => mkdirSync(at(name));

async function submodule(path: string): Promise<void> {
  const head = await op.git('rev-parse', 'HEAD');
  await op.git('update-index', '--add', '--cacheinfo', `160000,${head},${path}`);
  await op.git('commit', '--quiet', '--message', 'Add a submodule');
}

describe.each<[string, string, () => unknown]>([
  [
    'replaced by a symbolic link',
    'one.yaml is a symbolic link',
    () => {
      writeFileSync(at('text'), readFileSync(at('one.yaml')));
      rmSync(at('one.yaml'));
      symlinkSync('text', at('one.yaml'));
    },
  ],
  [
    'replaced by a submodule',
    'one.yaml is a submodule',
    async () => {
      await op.git('rm', '--quiet', 'one.yaml');
      await submodule('one.yaml');
      // `git add --all` would remove a submodule without a folder.
      mkdirSync(at('one.yaml'));
      writeFileSync(at('note'), '');
    },
  ],
  [
    'replaced by a folder',
    'one.yaml is a folder',
    () => {
      move('text');
      folder('one.yaml');
      renameSync(at('text'), at('one.yaml', 'text'));
    },
  ],
  ['renamed to .yml', 'one.yml has its name', () => move('one.yml')],
  ['renamed to .yaml.disabled', 'one.yaml.disabled has its name', () => move('one.yaml.disabled')],
  ['renamed in its case only', 'One.yaml has its name', () => move('One.yaml')],
  [
    'moved into a folder',
    'old/one.yaml has its name',
    () => {
      folder('old');
      move('old/one.yaml');
    },
  ],
  [
    'moved into a folder, with another text',
    'a/b/one.yaml has its name',
    () => {
      folder('a');
      folder('a/b');
      move('a/b/one.yaml');
      writeFileSync(at('a/b/one.yaml'), 'nothing of it is left\n');
    },
  ],
])('a manifest that is %s', (_what, says, act) => {
  test('is no removal: the last valid version stays in force until the file is back or gone', async () => {
    await op.refresh();
    const start = await op.git('rev-parse', 'HEAD');
    await act();
    await op.publishAll('By hand');
    const message = expect.stringContaining(says);
    expect(await daemon.reaches('one', 'InvalidManifest')).toMatchObject({ message });
    await daemon.fullPass();
    for (const known of [{}, { known: null }]) {
      await daemon.restart(known);
      expect(await daemon.reaches('one', 'InvalidManifest')).toMatchObject({ message });
      await daemon.fullPass();
    }
    expect(daemon.applied.filter(({ op }) => op === 'delete')).toEqual([]);
    expect(daemon.objectCount('one')).toBe(before);
    // A version in force is also repaired.
    const [key = ''] = daemon.of('dns', 'one');
    daemon.world('dns').delete(key);
    await daemon.fullPass();
    await eventually(() => expect(daemon.of('dns', 'one')).toContain(key));

    await op.git('read-tree', '--reset', '-u', start);
    await op.git('commit', '--quiet', '--message', 'Restore');
    await op.git('push', '--quiet', 'origin', 'HEAD');
    await daemon.reaches('one', 'Ready');
    await daemon.push('one', null);
    await eventually(() => expect(daemon.objectCount('one')).toBe(0));
  });
});

test('a moved manifest that is deleted at its new place is a removal', async () => {
  await op.refresh();
  folder('old');
  move('old/one.yaml');
  await op.publishAll('Move');
  await daemon.reaches('one', 'InvalidManifest');
  rmSync(at('old', 'one.yaml'));
  await op.publishAll('Remove');
  await eventually(() => expect(daemon.objectCount('one')).toBe(0));
});

test('reverting the commit that put a moved manifest back removes nothing', async () => {
  await op.refresh();
  folder('old');
  move('old/one.yaml');
  await op.publishAll('Move');
  await daemon.reaches('one', 'InvalidManifest');
  renameSync(at('old', 'one.yaml'), at('one.yaml'));
  await op.publishAll('Move back');
  await daemon.reaches('one', 'Ready');
  const { status, body } = await daemon.call('POST', '/sites/one/revert');
  expect([status, body.code]).toEqual([422, 'invalid_manifest']);
  await daemon.fullPass();
  expect(daemon.objectCount('one')).toBe(before);
});

test('removing a manifest and adding a submodule in the same commit is no proven removal', async () => {
  await daemon.push('three', daemon.manifest('three', 2));
  await daemon.reaches('three', 'Ready');
  await op.refresh();
  await op.git('rm', '--quiet', 'one.yaml');
  await submodule('sites');
  folder('sites');
  const revision = await op.publishAll('Another').catch(() => op.git('rev-parse', 'HEAD'));
  await op.git('push', '--quiet', 'origin', 'HEAD');
  await daemon.hasRead(revision);
  await daemon.fullPass();
  expect(daemon.objectCount('one')).toBe(before);
  expect(await daemon.reaches('one', 'Blocked')).toMatchObject({
    message: expect.stringMatching(/removed one.yaml and added sites, whose content isn't read/),
  });
});

test('renaming a manifest to any other name waits for an approval, and creates nothing', async () => {
  await op.refresh();
  await op.git('mv', 'one.yaml', 'kept-for-later');
  await op.publishAll('By hand');
  expect(await daemon.reaches('one', 'Blocked')).toMatchObject({
    message: expect.stringContaining('renamed one.yaml to kept-for-later'),
  });
  await daemon.fullPass();
  expect(daemon.objectCount('one')).toBe(before);
  await op.git('rm', '--quiet', 'kept-for-later');
  await op.publishAll('Remove');
  await eventually(() => expect(daemon.objectCount('one')).toBe(0));

  // A backup of a removed site doesn't count as a site.
  folder('backup');
  writeFileSync(at('backup', 'one.yaml'), 'x: 1\n');
  const revision = await op.publishAll('Back up');
  await daemon.hasRead(revision);
  await daemon.fullPass();
  expect(daemon.objectCount('one')).toBe(0);
});

test.each<[string, (() => Promise<unknown>)[]]>([
  [
    'renamed twice',
    [() => op.git('mv', 'one.yaml', 'archive.txt'), () => op.git('mv', 'archive.txt', 'archive2.txt')],
  ],
  [
    'renamed, and a link in its place removed',
    [
      async () => {
        await op.git('mv', 'one.yaml', 'archive2.txt');
        symlinkSync('archive2.txt', at('one.yaml'));
      },
      () => op.git('rm', '--quiet', 'one.yaml'),
    ],
  ],
  [
    'moved out of a folder in its place',
    [
      async () => {
        await op.git('mv', 'one.yaml', 'text');
        folder('one.yaml');
        renameSync(at('text'), at('one.yaml', 'text'));
      },
      () => op.git('mv', 'one.yaml/text', 'archive2.txt'),
    ],
  ],
  [
    'copied with an edit into a file of more than 256 KiB',
    [
      async () => {
        const text = readFileSync(at('one.yaml'), 'utf8').replace(/^name: .*$/m, 'name: Another name');
        writeFileSync(at('archive2.txt'), `${'# '.repeat(150_000)}\n${text}`);
        await op.git('rm', '--quiet', 'one.yaml');
      },
    ],
  ],
  [
    'renamed and edited by one commit',
    [
      async () => {
        await op.git('mv', 'one.yaml', 'archive2.txt');
        const text = readFileSync(at('archive2.txt'), 'utf8');
        writeFileSync(at('archive2.txt'), text.replace(/^name: .*$/m, 'name: Another name'));
      },
    ],
  ],
])(
  'a manifest that git still has under any name is not removed without an approval: %s',
  async (_what, steps) => {
    await op.refresh();
    for (const step of steps) {
      await step();
      await daemon.hasRead(await op.publishAll('By hand'));
      await daemon.fullPass();
    }
    expect(await daemon.reaches('one', 'Blocked')).toMatchObject({
      message: expect.stringContaining('git still has its text in archive2.txt'),
    });
    await daemon.fullPass();
    expect(daemon.objectCount('one')).toBe(before);
  },
);

test.each([
  ['empty lines', '\r\n'],
  ['spaces', ' '],
  ['lines of spaces', '  \n'],
  ['braces', '{ '],
  ['keys', ',site:'],
  ['sites', '{site:a'],
])('a removed site is removed soon, although another file holds 600 KB of %s', async (_what, text) => {
  await op.refresh();
  writeFileSync(at('large.txt'), text.repeat(600_000 / text.length));
  await daemon.hasRead(await op.publishAll('Add a large file'));
  rmSync(at('one.yaml'));
  await op.publishAll('Remove a site');
  expect(await daemon.reaches('one', 'Removed')).toMatchObject({ resources: [] });
});

test('an object that replaces a manifest’s object (refs/replace) is not read', async () => {
  await op.refresh();
  const blob = await op.git('rev-parse', 'HEAD:one.yaml');
  writeFileSync(at('other'), readFileSync(at('one.yaml'), 'utf8').replace('state: present', 'state: absent'));
  const other = await op.git('hash-object', '-w', 'other');
  await op.git('push', '--quiet', 'origin', `${other}:refs/replace/${blob}`);
  await daemon.restart({});
  expect(await daemon.reaches('one', 'Ready')).toMatchObject({ ready: true });
  await daemon.fullPass();
  expect(daemon.objectCount('one')).toBe(before);
});

test('YAML files of other programs don’t count as sites', async () => {
  await op.refresh();
  mkdirSync(at('.github', 'workflows'), { recursive: true });
  writeFileSync(at('.github', 'workflows', 'ci.yml'), 'on: push\n');
  writeFileSync(at('renovate.yml'), 'x: 1\n');
  const revision = await op.publishAll('Add workflows');
  await daemon.hasRead(revision);
  await daemon.fullPass();
  expect(daemon.loop.statuses().map(({ site }) => site)).toEqual(['one', 'two']);
});

test('an executable manifest is valid', async () => {
  await op.refresh();
  await op.git('update-index', '--chmod=+x', 'one.yaml');
  await op.git('commit', '--quiet', '--message', 'Executable');
  await op.git('push', '--quiet', 'origin', 'HEAD');
  await daemon.hasRead(await op.git('rev-parse', 'HEAD'));
  expect(await daemon.reaches('one', 'Ready')).toMatchObject({ ready: true });
  expect(daemon.objectCount('one')).toBe(before);
});

test.each<[string, string | null]>([
  ['a broken one', 'site: ['],
  ['an empty one', ''],
])('the last readable version decides whether a site is protected, after %s', async (_what, broken) => {
  await daemon.push('one', daemon.manifest('one', 0, { protect: true }));
  await daemon.reaches('one', 'Ready');
  await daemon.push('one', broken);
  await daemon.reaches('one', 'InvalidManifest');
  await daemon.push('one', null);
  for (const known of [{}, { known: null }]) {
    await daemon.restart(known);
    expect(await daemon.reaches('one', 'Blocked')).toMatchObject({
      message: expect.stringContaining('one is protected'),
    });
    await daemon.fullPass();
  }
  expect(daemon.objectCount('one')).toBe(before);
});

test('a rewritten branch isn’t accepted while nothing can be observed', async () => {
  const { revision } = await daemon.push('two', daemon.manifest('two', 1, { name: 'Renamed' }));
  await daemon.hasRead(revision);
  await op.refresh();
  daemon.control.fault = (_target, when) => (when === 'observe' ? new Error('not reachable') : undefined);
  // The new history has a commit that removes the file. So only the guard against a rewrite protects the site.
  await op.git('reset', '--quiet', '--hard', 'HEAD~1');
  await op.git('rm', '--quiet', 'one.yaml');
  await op.git('commit', '--quiet', '--message', 'Remove');
  await op.git('push', '--quiet', '--force', 'origin', 'HEAD:main');
  await daemon.reaches('two', 'ObserveFailed');
  await daemon.fullPass();
  daemon.control.fault = () => undefined;
  expect(await daemon.reaches('one', 'Blocked')).toMatchObject({
    message: expect.stringContaining('rewritten'),
  });
  await daemon.fullPass();
  expect(daemon.objectCount('one')).toBe(before);
});

test.each<[string, (text: string) => string | null]>([
  ['is broken', (text) => `${text}unknown: [\n`],
  ['is a folder', () => null],
])(
  'a site whose file %s in a history that begins again stays in force over a restart',
  async (_what, spoil) => {
    const text = readFileSync(at('one.yaml'), 'utf8');
    const broken = spoil(text);
    if (broken === null) {
      rmSync(at('one.yaml'));
      folder('one.yaml');
      writeFileSync(at('one.yaml', 'note'), '');
    } else writeFileSync(at('one.yaml'), broken);
    await op.publishAll('Spoil the file');
    await daemon.reaches('one', 'InvalidManifest');
    await op.git('checkout', '--quiet', '--orphan', 'again');
    await op.git('commit', '--quiet', '--message', 'Start the history again');
    await op.git('push', '--quiet', '--force', 'origin', 'HEAD:main');
    await daemon.fullPass();
    await daemon.restart();
    await daemon.fullPass();
    expect(daemon.loop.status('one')).toMatchObject({ reason: 'InvalidManifest' });
    expect(daemon.objectCount('one')).toBe(before);
    daemon.world('dns').clear();
    await daemon.fullPass();
    expect(daemon.objectCount('one')).toBe(before);
  },
);

test('a text in another client’s manifest that names a removed site doesn’t keep that site', async () => {
  await op.refresh();
  await daemon.push('two', daemon.manifest('two', 1, { name: 'Two, site: one' }));
  await op.refresh();
  await op.git('rm', '--quiet', 'one.yaml');
  await op.publishAll('Remove').catch(() => undefined);
  await eventually(() => expect(daemon.objectCount('one')).toBe(0));
});
