import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, onTestFinished, test } from 'vitest';
import { MACHINE_PATH } from './support/components.ts';

/** Runs the runner as a command, without the environment of the run that this test is part of. */
async function run(filters: string | readonly string[], env: Record<string, string>) {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|TAGYARD_|NODE_ENV$|NODE_OPTIONS$)/.test(name),
  );
  return await execa(process.execPath, ['test/run.ts', ...[filters].flat()], {
    env: { ...Object.fromEntries(inherited), PATH: MACHINE_PATH, ...env },
    extendEnv: false,
    reject: false,
    lines: true,
    timeout: 60_000,
  });
}

/** The lines below the heading of failures. */
const failuresIn = (lines: readonly string[]) =>
  lines.slice(lines.findIndex((line) => line.startsWith('Failed (')) + 1);

const WITHOUT_BROWSER = { CHROMIUM_PATH: '/nonexistent/chromium' };

describe('npm test', () => {
  test('skips what the machine lacks, says so, and ends with the counts alone', async () => {
    const { exitCode, stdout } = await run('test/components.test.ts', WITHOUT_BROWSER);
    expect(stdout.at(-1)).toMatch(/^\d+ passed, 0 failed$/);
    expect(stdout.filter((line) => line.startsWith('Left out'))).toHaveLength(1);
    expect(stdout.map((line) => line.trim().replaceAll(/\s+/g, ' '))).toContain(
      'chromium 1 file: /nonexistent/chromium is not installed',
    );
    expect(exitCode).toBe(0);
  });

  test('skips nothing and reports nothing as skipped if no selected file needs the missing component', async () => {
    const { exitCode, stdout, stderr } = await run('test/report.test.ts', WITHOUT_BROWSER);
    expect([...stdout, ...stderr].filter((line) => /^Left out|chromium/.test(line))).toEqual([]);
    expect(stdout.at(-1)).toMatch(/^[1-9]\d* passed, 0 failed$/);
    expect(exitCode).toBe(0);
  });

  test('passes without a component that no selected file needs, even if all components are required', async () => {
    const { exitCode, stdout, stderr } = await run('test/report.test.ts', {
      ...WITHOUT_BROWSER,
      TAGYARD_REQUIRE_ALL: '1',
    });
    expect(stderr.filter((line) => line.includes('chromium'))).toEqual([]);
    expect(stdout.at(-1)).toMatch(/^[1-9]\d* passed, 0 failed$/);
    expect(exitCode).toBe(0);
  });

  test.each(['test/components.test.ts', 'test/browser/loader.test.ts'])(
    'fails %s and names the missing component if all components are required',
    async (filter) => {
      const { exitCode, stdout, stderr } = await run(filter, {
        ...WITHOUT_BROWSER,
        TAGYARD_REQUIRE_ALL: '1',
      });
      expect(stdout.at(-1)).toMatch(/^\d+ passed, [1-9]\d* failed$/);
      expect(stdout.filter((line) => line.startsWith('Left out'))).toEqual([]);
      expect(failuresIn(stdout)[0]).toContain(`  ${filter} > `);
      expect(stderr).toContain('TAGYARD_REQUIRE_ALL=1, but chromium: /nonexistent/chromium is not installed');
      expect(exitCode).toBe(1);
    },
  );

  test('runs files of several projects beside each other, and counts them together', async () => {
    const { exitCode, stdout } = await run(
      ['test/report.test.ts', 'test/browser/loader.test.ts'],
      WITHOUT_BROWSER,
    );
    const rows = stdout.map((line) => line.trim().split(/\s+/).slice(0, 2).join(' '));
    expect(rows).toEqual(expect.arrayContaining(['unit 1', 'browser 1', 'all 2']));
    expect(stdout.at(-1)).toMatch(/^[1-9]\d* passed, 0 failed$/);
    expect(exitCode).toBe(0);
  });

  test('counts files in a network of their own as failed if they lack a required component', async () => {
    // A cluster's programs are expected in ~/.cache/tagyard: with an empty home, they are missing.
    const home = await mkdtemp(join(tmpdir(), 'tagyard-home-'));
    onTestFinished(() => rm(home, { recursive: true }));
    const env = { HOME: home, TAGYARD_REQUIRE_ALL: '1' };
    const { exitCode, stdout } = await run('test/kubernetes/cluster.test.ts', env);
    const rows = stdout.map((line) => line.trim().split(/\s+/).slice(0, 4).join(' '));
    expect(rows).toContain('cluster 1 0 1');
    expect(failuresIn(stdout)[0]).toContain('  test/kubernetes/cluster.test.ts > ');
    expect(exitCode).toBe(1);
  });

  test('counts files as failed if the process of their project ends without an outcome', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tagyard-programs-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    // This `unshare` permits namespaces when it is tried, and then fails.
    const refusing = '#!/bin/sh\nfor last; do :; done\ntest "$last" = true || exit 7\n';
    await writeFile(join(folder, 'unshare'), refusing, { mode: 0o755 });
    const { exitCode, stdout } = await run('test/kubernetes/cluster.test.ts', {
      PATH: `${folder}:${MACHINE_PATH}`,
    });
    expect(failuresIn(stdout)[0]).toContain(
      'test/kubernetes/cluster.test.ts > the process of the project cluster: ended with 7',
    );
    expect(exitCode).toBe(1);
  });

  test('runs a failed file a second time if asked, and fails if that fails too', async () => {
    const env = { ...WITHOUT_BROWSER, TAGYARD_REQUIRE_ALL: '1', TAGYARD_SECOND_TRY: '1' };
    const { exitCode, stdout } = await run('test/components.test.ts', env);
    expect(new Set(stdout.filter((line) => line.startsWith('failed: '))).size).toBeGreaterThan(0);
    expect(stdout.filter((line) => line.startsWith('failed: ')).length % 2).toBe(0);
    expect(stdout.filter((line) => line.startsWith('Passed at the second try'))).toEqual([]);
    expect(stdout.at(-1)).toMatch(/^\d+ passed, [1-9]\d* failed$/);
    expect(exitCode).toBe(1);
  });

  test('fails where no test ran', async () => {
    const { exitCode, stdout } = await run('test/nowhere', {});
    expect(stdout.at(-1)).toBe('0 passed, 0 failed');
    expect(exitCode).toBe(1);
  });
});
