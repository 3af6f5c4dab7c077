import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RetryableError, TerminalError } from '../../../base/errors.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon, SECRET } from '../../support/gitops/memory-daemon.ts';

const CLI = fileURLToPath(new URL('../../../gitops/cli.ts', import.meta.url));
const NEW = `sha256:${'b'.repeat(64)}`;
const SITES = ['alpha', 'beta', 'gamma', 'delta'];

let daemon: MemoryDaemon;
let url: string;
/** Sites that can't run the new image, with the error. */
let refusing: Map<string, Error>;
/** The sites in the order in which the new image was first applied. */
let tried: string[];
beforeEach(async () => {
  daemon = await memoryDaemon();
  // A host that serves TLS has certificates.
  daemon.control.certificates = (site) => [
    {
      target: 'certificate',
      key: `${site}.example.net`,
      state: 'live',
      reason: '',
      issuer: null,
      notAfter: null,
      addresses: null,
      nextCheck: null,
    },
  ];
  url = await daemon.app.listen({ host: '127.0.0.1', port: 0 });
  refusing = new Map();
  tried = [];
  daemon.control.before = ({ site, target, op, desired }) => {
    const image = (desired?.spec as { image?: string } | undefined)?.image; // the memory applier's own spec
    if (target !== 'containers' || op === 'delete' || image !== NEW) return;
    if (!tried.includes(site)) tried.push(site);
    const refusal = refusing.get(site);
    if (refusal !== undefined) throw refusal;
  };
  for (const [number, site] of SITES.entries()) await daemon.push(site, daemon.manifest(site, number));
  for (const site of SITES) await daemon.reaches(site, 'Ready');
});
afterEach(() => daemon.close());

const start = (...args: string[]) =>
  execa(process.execPath, [CLI, 'image', NEW, '--watch', '0', ...args], {
    reject: false,
    env: { INFRA_PROVISIONER_URL: url, INFRA_SECRET: SECRET },
  });
const outcomes = async (...args: string[]) => {
  const { exitCode, stdout } = await start('--json', ...args);
  const report: { sites: { site: string; state: string; detail: string }[]; untouched: string[] } =
    JSON.parse(stdout);
  return {
    exitCode,
    ...report,
    states: Object.fromEntries(report.sites.map(({ site, state }) => [site, state])),
  };
};
const imageOf = async (site: string) => {
  const head = await daemon.repo.head();
  const file = await daemon.repo.readSite(head ?? '', site);
  return /^image: (.*)$/m.exec(file?.text ?? '')?.[1];
};

describe('tagyard image', () => {
  test('changes the first site alone, then the others, each by its own commit; a second run changes nothing', async () => {
    const first = await outcomes('--sites', 'gamma,alpha,beta');
    expect(first).toMatchObject({
      exitCode: 0,
      states: { gamma: 'swapped', alpha: 'swapped', beta: 'swapped' },
      untouched: [],
    });
    expect(tried[0]).toBe('gamma');
    expect(await imageOf('delta')).not.toBe(NEW);
    for (const site of ['alpha', 'beta', 'gamma']) {
      const [commit] = await daemon.repo.history(site, 1);
      expect(commit).toMatchObject({
        subject: `Change the image of ${site}`,
        trailers: { Site: site, Reason: `tagyard image ${NEW}` },
      });
    }
    const head = await daemon.repo.head();
    const again = await outcomes('--sites', 'gamma,alpha,beta');
    expect(again).toMatchObject({
      exitCode: 0,
      states: { gamma: 'already', alpha: 'already', beta: 'already' },
    });
    expect(await daemon.repo.head()).toBe(head);
  });

  test('reverts the first site if it fails, by a commit with the reason, and stops', async () => {
    refusing.set('alpha', new TerminalError('it crash-loops'));
    const before = await imageOf('alpha');
    const report = await outcomes();
    expect(report).toMatchObject({ exitCode: 1, states: { alpha: 'reverted' } });
    expect(report.sites[0]?.detail).toContain('it crash-loops');
    expect(report.untouched).toEqual(['beta', 'delta', 'gamma']);
    expect(tried).toEqual(['alpha']);
    const [revert, change] = await daemon.repo.history('alpha', 2);
    expect(revert).toMatchObject({ subject: 'Revert alpha', trailers: { Reverts: change?.revision } });
    expect(revert?.trailers.Reason).toContain('it crash-loops');
    expect(await imageOf('alpha')).toBe(before);
    await daemon.reaches('alpha', 'Ready');
  });

  test.each([
    [
      'continues if few sites fail',
      '1',
      { alpha: 'swapped', beta: 'reverted', delta: 'swapped', gamma: 'swapped' },
    ],
    ['stops if too many sites fail', '0', { alpha: 'swapped', beta: 'reverted' }],
  ])('%s', async (_what, most, states) => {
    refusing.set('beta', new RetryableError('not healthy'));
    const report = await outcomes('--at-once', '1', '--max-failures', most);
    expect(report).toMatchObject({ exitCode: 1, states });
    expect(Object.keys(report.states)).toEqual(Object.keys(states));
  });

  const makeUnwell = async (site: string) => {
    daemon.control.fault = (target, at) =>
      target === 'dns' && at !== 'observe' && at.site === site
        ? new TerminalError('no such zone')
        : undefined;
    await daemon.push(site, daemon.manifest(site, SITES.indexOf(site), { name: 'Renamed' }));
    await daemon.reaches(site, 'Failed');
  };

  test('skips a site that was not ready before, and changes the next one first', async () => {
    await makeUnwell('alpha');
    const report = await outcomes('--max-failures', '0');
    expect(report).toMatchObject({
      exitCode: 1,
      states: { alpha: 'skipped', beta: 'swapped', delta: 'swapped', gamma: 'swapped' },
      untouched: [],
    });
    expect(report.sites[0]?.detail).toContain('not ready before');
    expect(tried[0]).toBe('beta');
    expect(await imageOf('alpha')).not.toBe(NEW);
  });

  test('tries a bad image on one ready site only, also after skipped sites', async () => {
    await makeUnwell('alpha');
    refusing.set('beta', new TerminalError('it crash-loops'));
    expect(await outcomes('--max-failures', '9')).toMatchObject({
      exitCode: 1,
      states: { alpha: 'skipped', beta: 'reverted' },
      untouched: ['delta', 'gamma'],
    });
    expect(tried).toEqual(['beta']);
  });

  test('can be interrupted; the next run continues', async () => {
    const gate = Promise.withResolvers<void>();
    const recordSite = daemon.control.before;
    daemon.control.before = async (change, progress) => {
      await recordSite(change, progress);
      if (tried.includes('beta') && change.site === 'beta') await gate.promise;
    };
    const running = start('--at-once', '1');
    await eventually(() => expect(tried).toContain('beta'));
    running.kill('SIGINT');
    const { exitCode, stdout } = await running;
    expect(exitCode).toBe(1);
    expect(stdout).toContain('run the same command again');
    expect(tried).not.toContain('gamma');
    gate.resolve();
    expect(await outcomes('--at-once', '1')).toMatchObject({ exitCode: 0, untouched: [] });
    for (const site of SITES) expect(await imageOf(site)).toBe(NEW);
  });

  test.each([
    [['--sites', 'nosuch'], 1, 'no site nosuch'],
    [['--at-once', '0'], 64, '--at-once must be a number, at least 1'],
  ])('refuses %j', async (args, exitCode, message) => {
    expect(await start(...args)).toMatchObject({ exitCode, stderr: expect.stringContaining(message) });
    expect(tried).toEqual([]);
  });
});
