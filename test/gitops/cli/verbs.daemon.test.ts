import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { TerminalError } from '../../../base/errors.ts';
import { validate } from '../../../gitops/cli/validate.ts';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { tagyardOf } from '../../support/cli/command.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';

let daemon: MemoryDaemon;
let url: string;
beforeEach(async () => {
  daemon = await memoryDaemon();
  url = await daemon.app.listen({ host: '127.0.0.1', port: 0 });
});
afterEach(() => daemon.close());

const tagyard = (...given: Parameters<ReturnType<typeof tagyardOf>>) => tagyardOf(url)(...given);
async function applied(...names: string[]) {
  for (const [number, name] of names.entries()) await daemon.push(name, daemon.manifest(name, number));
  for (const name of names) await daemon.reaches(name, 'Ready');
}
/** Stops all changes, so that a pushed one stays in the plan. */
const freeze = () => writeFile(join(daemon.dir, 'freeze'), '');

describe('tagyard plan', () => {
  test('exits with 0 if nothing would change and with 2 if something would, also for a branch', async () => {
    await applied('one', 'two');
    expect(await tagyard(['plan'])).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('nothing'),
    });
    const base = await daemon.repo.head();
    await daemon.push('one', daemon.manifest('one', 0, { name: 'Renamed' }));
    const head = await daemon.repo.head();
    await daemon.reaches('one', 'Ready');
    // `--ref` takes any revision, not only a branch.
    const asked = await tagyard(['plan', '--ref', base ?? '', '--json']);
    expect(asked.exitCode).toBe(2);
    expect(JSON.parse(asked.stdout)).toMatchObject({
      revision: base,
      changes: expect.arrayContaining([expect.objectContaining({ site: 'one', op: 'update' })]),
    });
    expect((await tagyard(['plan', '--ref', head ?? ''])).exitCode).toBe(0);
    expect(await tagyard(['plan', '--ref', 'nowhere'])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('nowhere'),
    });
  });

  test.each([
    ['on the same machine', {}],
    ['that is a remote', { pollSeconds: 3_600 }],
  ])('shows what a branch would change now, in a repository %s', async (_where, options) => {
    await daemon.close();
    daemon = await memoryDaemon(options);
    url = await daemon.app.listen({ host: '127.0.0.1', port: 0 });
    await daemon.call('POST', '/provision?wait=20', daemon.manifest('one', 0));
    await daemon.call('POST', '/provision?wait=20', daemon.manifest('two', 1));
    daemon.applied.length = 0;
    const clone = join(daemon.dir, 'clone');
    const git = (...args: string[]) =>
      execa('git', ['-c', 'user.name=Op', '-c', 'user.email=op@example.test', ...args], { cwd: clone });
    await execa('git', ['clone', '--quiet', daemon.sitesRepo, clone]);
    await git('push', '--quiet', 'origin', 'HEAD:same');
    expect(await tagyard(['plan', '--ref', 'same'])).toMatchObject({ exitCode: 0 });
    for (const [file, number, keys] of [
      ['one', 0, ['one']],
      ['three', 2, ['one', 'three']],
    ] as const) {
      await writeFile(
        join(clone, `${file}.yaml`),
        formatManifest(daemon.manifest(file, number, { name: 'x' })),
      );
      await git('add', '.');
      await git('commit', '--quiet', '--message', file);
      await git('push', '--quiet', 'origin', 'HEAD:feature');
      const { exitCode, stdout } = await tagyard(['plan', '--ref', 'feature', '--json']);
      expect(exitCode).toBe(2);
      const { changes } = JSON.parse(stdout);
      expect([...new Set(changes.map(({ site }: { site: string }) => site))]).toEqual(keys);
    }
    expect(daemon.applied).toEqual([]);
    expect(await tagyard(['plan'])).toMatchObject({ exitCode: 0 });
  });

  test('prints colours on request, and none into a pipe', async () => {
    await freeze();
    await daemon.push('one', daemon.manifest('one', 0));
    await daemon.reaches('one', 'Frozen');
    expect((await tagyard(['plan'])).stdout).not.toContain('\u001b[');
    expect((await tagyard(['plan'], { FORCE_COLOR: '1' })).stdout).toContain('\u001b[32mcreate');
  });
});

describe('tagyard status', () => {
  test('names a site whose preview server didn’t start, which is ready all the same', async () => {
    await applied('one');
    const message = 'the preview server didn’t start for its last request: why. What to do';
    daemon.control.conditions = (site) => (site === 'one' ? [{ condition: 'preview_failed', message }] : []);
    const all = await tagyard(['status']);
    expect(all).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining(`preview_failed one: ${message}`),
    });
    expect((await tagyard(['status', 'one'])).stdout).toContain(`preview_failed: ${message}`);
    const { sites } = JSON.parse((await tagyard(['status', '--json'])).stdout);
    expect(sites).toMatchObject([{ site: 'one', ready: true, conditions: [{ message }] }]);
  });
});

describe('tagyard apply', () => {
  test('waits until the plan is applied, and refuses a plan with another checksum', async () => {
    await daemon.push('one', daemon.manifest('one', 0));
    await daemon.reaches('one', 'Ready');
    daemon.world('kv').clear();
    const { checksum } = JSON.parse((await tagyard(['plan', '--json'])).stdout);
    expect(await tagyard(['apply', '--checksum', 'ffff'])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(checksum),
    });
    expect(daemon.of('kv', 'one')).toEqual([]);
    const done = await tagyard(['apply', '--checksum', checksum, '--json']);
    expect(done.exitCode).toBe(0);
    expect(JSON.parse(done.stdout).operations).toMatchObject([{ site: 'one', status: 'succeeded' }]);
    expect(daemon.of('kv', 'one')).toEqual(['one.example.net']);
    expect((await tagyard(['apply'])).stdout).toContain('nothing to change');
  });

  test('exits with 1 and prints the reason if a site fails', async () => {
    await applied('one');
    daemon.world('kv').clear();
    daemon.control.fault = (target, at) =>
      target === 'kv' && at !== 'observe' ? new TerminalError('no permission') : undefined;
    expect(await tagyard(['apply'])).toMatchObject({
      exitCode: 1,
      stdout: expect.stringContaining('no permission'),
    });
  });
});

describe('tagyard revert', () => {
  test('undoes the newest commit of one site by a commit that names it', async () => {
    await applied('one', 'two');
    const { revision } = await daemon.push('one', daemon.manifest('one', 0, { name: 'A mistake' }));
    await daemon.push('two', daemon.manifest('two', 1, { name: 'Stays' }));
    expect((await tagyard(['revert', 'one', '--reason', 'typo'])).exitCode).toBe(0);
    const [commit] = await daemon.repo.history('one', 1);
    expect(commit).toMatchObject({
      subject: 'Revert one',
      trailers: { Site: 'one', Reverts: revision, Reason: 'typo' },
    });
    const head = (await daemon.repo.head()) ?? '';
    expect((await daemon.repo.readSite(head, 'one'))?.text).toBe(formatManifest(daemon.manifest('one', 0)));
    expect((await daemon.repo.readSite(head, 'two'))?.text).toContain('Stays');
  });

  test.each(['a tombstone', 'a deleted file'])('restores a removed site: %s', async (how) => {
    await applied('one', 'two');
    if (how === 'a tombstone') await daemon.call('POST', '/deprovision', { site: 'one' });
    else await daemon.push('one', null);
    await daemon.reaches('one', 'Removed');
    expect((await tagyard(['revert', 'one'])).exitCode).toBe(0);
    await daemon.reaches('one', 'Ready');
    expect(daemon.objectCount('one')).toBeGreaterThan(0);
  });

  test('undoes a given commit with all later ones; a creation is undone by a tombstone', async () => {
    await applied('one');
    const second = await daemon.push('one', daemon.manifest('one', 0, { name: 'Second' }));
    await daemon.push('one', daemon.manifest('one', 0, { name: 'Third' }));
    expect((await tagyard(['revert', 'one', second.revision.slice(0, 10)])).exitCode).toBe(0);
    const head = (await daemon.repo.head()) ?? '';
    expect((await daemon.repo.readSite(head, 'one'))?.text).toBe(formatManifest(daemon.manifest('one', 0)));
    const [, , , created] = await daemon.repo.history('one');
    expect((await tagyard(['revert', 'one', created?.revision ?? '', '--yes'])).exitCode).toBe(0);
    await daemon.reaches('one', 'Removed');
  });

  test.each([
    ['a site that never existed', ['nosuch'], 'no commit ever touched'],
    ['a commit of another site', ['two', 'HEAD'], 'did not touch'],
    ['a word that is no revision', ['one', 'nowhere'], 'no such revision'],
  ])('refuses %s', async (_what, args, words) => {
    await applied('two', 'one');
    expect(await tagyard(['revert', ...args])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(words),
    });
  });
});

describe('tagyard suspend and resume', () => {
  test('stop and resume a site by commits', async () => {
    await applied('one');
    await tagyard(['suspend', 'one', '--reason', 'under investigation']);
    daemon.world('kv').clear();
    daemon.loop.sync();
    await daemon.reaches('one', 'Suspended');
    expect((await tagyard(['suspend', 'one'])).stdout).toContain('already in that state');
    await tagyard(['resume', 'one']);
    await daemon.reaches('one', 'Ready');
    expect(daemon.of('kv', 'one')).toHaveLength(1);
    const subjects = (await daemon.repo.history('one')).map(({ subject }) => subject);
    expect(subjects).toEqual(['Resume one', 'Suspend one', 'By hand']);
  });
});

describe('tagyard prune', () => {
  test('deletes tombstones that are old enough, and no other file', async () => {
    await applied('one', 'two');
    await daemon.call('POST', '/deprovision', { site: 'one' });
    await daemon.reaches('one', 'Removed');
    expect((await tagyard(['prune'])).stdout).toContain('no old tombstone');
    expect(JSON.parse((await tagyard(['prune', '--days', '0', '--json'])).stdout)).toEqual({
      pruned: ['one'],
    });
    const files = await daemon.repo.read((await daemon.repo.head()) ?? '');
    expect(files.map(({ site }) => site)).toEqual(['two']);
    expect((await tagyard(['prune', '--days', '-1'])).exitCode).toBe(64);
  });
});

describe('tagyard diff', () => {
  test('shows the difference between the newest manifests and the applied ones', async () => {
    await applied('one', 'two');
    expect(await tagyard(['diff'])).toMatchObject({ exitCode: 0, stdout: '' });
    await freeze();
    await daemon.push('one', daemon.manifest('one', 0, { name: 'Renamed' }));
    await daemon.reaches('one', 'Frozen');
    const { exitCode, stdout } = await tagyard(['diff']);
    expect(exitCode).toBe(2);
    expect(stdout.split('\n')).toEqual(
      expect.arrayContaining(['--- applied/one.yaml', '-name: Acme Shop', '+name: Renamed']),
    );
    expect((await tagyard(['diff', 'two'])).exitCode).toBe(0);
    expect(await tagyard(['diff', 'nosuch'])).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringMatching(/^.*no such site.*$/),
    });
  });
});

describe('tagyard validate', () => {
  test('refuses files that claim the same port or token, and shows no escape sequence of a file’s name', async () => {
    const alone = { INFRA_PROVISIONER_URL: '' };
    const path = (name: string) => join(daemon.dir, name);
    const write = (name: string, number: number, extra: object = {}) =>
      writeFile(path(`${name}.yaml`), formatManifest(daemon.manifest(name, number, extra)));
    await write('first', 60);
    await write('second', 60, { container: daemon.manifest('second', 61).container });
    await write('third', 60, { host: 'tag-2', container: daemon.manifest('third', 62).container });
    await write('gone', 60, { state: 'absent' });
    const files = ['first', 'second', 'gone', 'first'].map((name) => path(`${name}.yaml`));
    const { exitCode, stdout } = await tagyard(['validate', ...files], alone);
    expect(exitCode).toBe(1);
    const holder = `is also claimed by ${path('first.yaml')}`;
    for (const claim of ['port 20120', 'port 20121', 'token lt_loader0token00060']) {
      expect(stdout).toContain(`${path('second.yaml')}: ${claim} ${holder}`);
    }
    const other = await tagyard(['validate', path('first.yaml'), path('third.yaml')], alone);
    expect(other.stdout).toContain('third.yaml: token');
    expect(other.stdout).not.toContain('third.yaml: port');
    const hostile = await tagyard(['validate', path('\x1b[31mred\x1b[0m.yaml')], alone);
    expect(hostile.stdout).toContain('\\u001b[31mred');
    expect(hostile.stdout).not.toContain('\x1b');
  });

  test('refuses a domain below that of another client, which the provisioner would refuse', async () => {
    const path = (name: string) => join(daemon.dir, `${name}.yaml`);
    const write = (name: string, number: number, domain: string, extra: object = {}) => {
      const token = `ct_container0tok${number}000`.slice(0, 20);
      const domains = [{ domain, webTagId: 'GTM-ABC1234', token }];
      return writeFile(path(name), formatManifest(daemon.manifest(name, number, { domains, ...extra })));
    };
    const client = '7c9e6679-7425-40de-944b-e07fc1f90aff';
    await write('owner', 71, 'acme.example');
    await write('sister', 72, 'two.acme.example');
    await write('rival', 73, 'shop.acme.example', { client });
    const files = ['owner', 'sister', 'rival'].map(path);
    const { exitCode, stdout } = await tagyard(['validate', ...files], { INFRA_PROVISIONER_URL: '' });
    expect(stdout).toBe(
      `${path('rival')}: acme.example belongs to another client, whose site is in ${path('owner')}`,
    );
    expect(exitCode).toBe(1);
  });

  test('checks files without a provisioner, and names a problem’s file, line and key', async () => {
    const good = join(daemon.dir, 'good.yaml');
    const bad = join(daemon.dir, 'bad.yaml');
    await writeFile(good, formatManifest(daemon.manifest('good', 0)));
    await writeFile(
      bad,
      formatManifest(daemon.manifest('bad', 1)).replace('processing: 20002', 'processing: 80'),
    );
    const alone = { INFRA_PROVISIONER_URL: 'http://127.0.0.1:1' };
    expect(await tagyard(['validate', good], alone)).toMatchObject({
      exitCode: 0,
      stdout: '1 file is valid',
    });
    const { exitCode, stdout } = await tagyard(['validate', good, bad, join(daemon.dir, 'none.yaml')], alone);
    expect(exitCode).toBe(1);
    const lines = stdout.split('\n');
    expect(lines[0]).toMatch(/bad\.yaml:\d+: ports\.processing: /);
    expect(lines[1]).toMatch(/none\.yaml: ENOENT/);
    expect(JSON.parse((await tagyard(['validate', bad, '--json'], alone)).stdout)).toMatchObject([
      { file: bad, line: expect.any(Number), path: 'ports.processing' },
    ]);
  });

  test.each<[string, (text: string) => string, RegExp]>([
    ['no YAML at all', () => 'name: [', /^kind\.yaml:\d+: Flow sequence/],
    ['no mapping', () => '- a\n', /^kind\.yaml:1: must be a mapping/],
    ['a key twice', (text) => `${text}name: x\n`, /^kind\.yaml:\d+: Map keys must be unique/],
    ['an unknown key', (text) => `${text}nmae: x\n`, /^kind\.yaml:\d+: nmae: unknown key/],
    ['a missing key', (text) => text.replace(/^name: .*\n/m, ''), /^kind\.yaml:1: name: /],
    ['a wrong type', (text) => text.replace(/^name: .*/m, 'name: 7'), /^kind\.yaml:\d+: name: .*string/],
    [
      'another site’s name',
      (text) => text.replace('site: kind', 'site: other'),
      /^kind\.yaml:2: site: must equal/,
    ],
    [
      'a newer version',
      (text) => text.replace('version: 1', 'version: 9'),
      /^kind\.yaml:1: version: .*newer/,
    ],
    ['an alias', (text) => text.replace(/^name: .*/m, 'name: *x'), /^kind\.yaml:\d+: anchors and aliases/],
    ['a tag', (text) => text.replace(/^name: .*/m, 'name: !!binary x'), /^kind\.yaml:\d+: tags/],
    [
      'a file that is too large',
      (text) => `${text}#${'x'.repeat(300_000)}`,
      /^kind\.yaml: is larger than 256 KiB/,
    ],
    [
      'too many nested levels',
      (text) => `${text}x: ${'['.repeat(99)}`,
      /^kind\.yaml:\d+: is nested too deeply/,
    ],
  ])('names place and reason: %s', async (_what, spoil, message) => {
    await writeFile(join(daemon.dir, 'kind.yaml'), spoil(formatManifest(daemon.manifest('kind', 0))));
    const lines: string[] = [];
    const write = vi
      .spyOn(process.stdout, 'write')
      .mockImplementation((line) => lines.push(String(line)) > 0);
    const exitCode = process.exitCode;
    await validate([join(daemon.dir, 'kind.yaml')], {}).finally(() => write.mockRestore());
    expect(process.exitCode).toBe(1);
    process.exitCode = exitCode;
    expect(lines.join('').replace(`${daemon.dir}/`, '')).toMatch(message);
  });
});

describe('tagyard doctor', () => {
  test('prints the reason and remedy of each site that is not well', async () => {
    await applied('one', 'two');
    expect(await tagyard(['doctor'])).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('2 of 2 sites are well'),
    });
    await daemon.push('one', 'version: 1\nsite: one\nwhat: ever\n');
    await daemon.reaches('one', 'InvalidManifest');
    const { exitCode, stdout } = await tagyard(['doctor']);
    expect(exitCode).toBe(1);
    expect(stdout).toContain('one.yaml:3: what: unknown key');
    expect(stdout).toContain('tagyard revert');
    expect(stdout).toContain('1 of 2 sites is well');
  });

  test('lists once the sites that identify visitors before they choose, which doesn’t count as a problem', async () => {
    const regions = [{ places: ['DE'], consent: 'required' as const }];
    await daemon.push('one', daemon.manifest('one', 0));
    await daemon.push('two', daemon.manifest('two', 1, { consent: 'required' }));
    await daemon.push('three', daemon.manifest('three', 2));
    await daemon.push('four', daemon.manifest('four', 3, { regions }));
    for (const name of ['one', 'two', 'three', 'four']) await daemon.reaches(name, 'Ready');
    const { exitCode, stdout } = await tagyard(['doctor']);
    expect(exitCode).toBe(0);
    expect(stdout).toContain(
      [
        'note 3 of 4 sites identify visitors before they choose',
        '  everywhere but in DE: four',
        '  everywhere: one, three',
        '  → Where the law asks for consent',
      ].join('\n'),
    );
    expect(stdout.match(/^note /gm)).toHaveLength(1);
    expect(stdout).toContain('4 of 4 sites are well');
    const { notes } = JSON.parse((await tagyard(['doctor', '--json'])).stdout);
    expect(notes).toEqual([
      {
        message: '3 of 4 sites identify visitors before they choose',
        sites: [
          { site: 'four', where: 'everywhere but in DE' },
          { site: 'one', where: 'everywhere' },
          { site: 'three', where: 'everywhere' },
        ],
        remedy: expect.any(String),
      },
    ]);
  });

  test('prints the certificate problems of a site that is ready', async () => {
    await applied('one', 'two');
    const live = {
      target: 'certificate',
      issuer: 'CA',
      notAfter: null,
      addresses: null,
      nextCheck: null,
    } as const;
    daemon.control.certificates = (site) => [
      { ...live, key: `${site}-origin.example.net`, state: 'live', reason: '' },
      ...(site === 'one'
        ? [{ ...live, key: 'tags.one.example', state: 'pending_dns' as const, reason: 'make a record' }]
        : []),
    ];
    const { exitCode, stdout } = await tagyard(['doctor']);
    expect(exitCode).toBe(1);
    expect(stdout.split('\n').slice(0, 3)).toEqual([
      'one: pending_dns, the name does not lead to this host',
      '  tags.one.example: make a record',
      expect.stringMatching(/^ {2}→ Create the DNS record/),
    ]);
    expect(stdout).toContain('1 of 2 sites is well');
  });
});

describe('tagyard approve', () => {
  test('allows the guarded changes of the plan', async () => {
    await applied('one');
    await daemon.push('one', null);
    await daemon.reaches('one', 'Blocked');
    const { checksum } = JSON.parse((await tagyard(['plan', '--json'])).stdout);
    expect((await tagyard(['approve', checksum])).exitCode).toBe(0);
    await daemon.reaches('one', 'Removed');
  });
});
