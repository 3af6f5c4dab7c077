import { execa } from 'execa';
import { describe, expect, test } from 'vitest';

/** The runner as a command on one quick file, in a process that knows nothing of the run that it is part of. */
async function run(filter: string, env: Record<string, string>) {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|TAGYARD_|NODE_ENV$|NODE_OPTIONS$)/.test(name),
  );
  return await execa(process.execPath, ['test/run.ts', filter], {
    env: { ...Object.fromEntries(inherited), ...env },
    extendEnv: false,
    reject: false,
    lines: true,
    timeout: 60_000,
  });
}

const WITHOUT_BROWSER = { CHROMIUM_PATH: '/nonexistent/chromium' };

describe('npm test', () => {
  test('leaves out what the machine lacks, says so, and ends with the counts alone', async () => {
    const { exitCode, stdout } = await run('test/components.test.ts', WITHOUT_BROWSER);
    expect(stdout.at(-1)).toMatch(/^\d+ passed, 0 failed$/);
    expect(stdout.map((line) => line.trim().replaceAll(/\s+/g, ' '))).toContain(
      'chromium /nonexistent/chromium is not installed',
    );
    expect(exitCode).toBe(0);
  });

  test('fails for a missing component where all are required, and names it', async () => {
    const { exitCode, stdout, stderr } = await run('test/components.test.ts', {
      ...WITHOUT_BROWSER,
      TAGYARD_REQUIRE_ALL: '1',
    });
    expect(stdout.at(-1)).toMatch(/^\d+ passed, [1-9]\d* failed$/);
    expect(stderr).toContain('TAGYARD_REQUIRE_ALL=1, but chromium: /nonexistent/chromium is not installed');
    expect(exitCode).toBe(1);
  });

  test('fails where no test ran', async () => {
    const { exitCode, stdout } = await run('test/nowhere', {});
    expect(stdout.at(-1)).toBe('0 passed, 0 failed');
    expect(exitCode).toBe(1);
  });
});
