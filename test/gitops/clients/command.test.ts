import { describe, expect, test } from 'vitest';
import { CommandError, runCommand } from '../../../gitops/clients/command.ts';

const node = (script: string, options?: Parameters<typeof runCommand>[2]) =>
  runCommand(process.execPath, ['--eval', script], options);

const failure = async (run: Promise<unknown>) => {
  const error = await run.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(CommandError);
  return error as CommandError; // checked above
};

describe('a command', () => {
  test('gets its arguments unchanged, without a shell', async () => {
    const argument = '$(id); `id` | "x" && \\ *';
    const { stdout } = await runCommand(process.execPath, ['--print', 'process.argv[1]', '--', argument]);
    expect(stdout).toBe(argument);
  });

  test('inherits no variable but PATH', async () => {
    const { stdout } = await node('console.log(JSON.stringify(process.env))', { env: { GIVEN: '1' } });
    expect(Object.keys(process.env).length).toBeGreaterThan(2);
    expect(JSON.parse(stdout)).toEqual({ GIVEN: '1', PATH: process.env.PATH });
  });

  test('fails with its exit code and error output', async () => {
    const error = await failure(node('console.error("first"); console.error("last word"); process.exit(3)'));
    expect(error).toMatchObject({ exitCode: 3, stderr: 'first\nlast word' });
    expect(error.message).toContain('last word');
  });

  test.each([
    ['runs too long', () => node('setInterval(() => {}, 1000)', { timeoutMs: 200 })],
    ['prints without end', () => node('setInterval(() => process.stdout.write("x".repeat(1e6)), 1)')],
    ['is not there', () => runCommand('tagyard-no-such-program', [])],
  ])('fails without an exit code when it %s', async (_case, run) => {
    expect((await failure(run())).exitCode).toBeNull();
  });
});
