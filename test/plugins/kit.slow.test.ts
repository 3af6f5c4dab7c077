import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const project = fileURLToPath(new URL('../..', import.meta.url));

let tree: string;
beforeEach(() => {
  // A copy of what the kit edits and its tests need, so that the project itself does not change.
  tree = mkdtempSync(join(tmpdir(), 'tagyard-kit-'));
  const parts = [
    'base',
    'edge',
    'plugins',
    'gitops',
    'sites',
    'test/support',
    'test/projects.ts',
    'package.json',
    'tsconfig.json',
    'vitest.config.ts',
  ];
  for (const part of parts) cpSync(join(project, part), join(tree, part), { recursive: true });
  symlinkSync(join(project, 'node_modules'), join(tree, 'node_modules'));
});
afterEach(() => rmSync(tree, { recursive: true, force: true }));

const read = (path: string) => readFileSync(join(tree, path), 'utf8');

/** Runs a script with Node in the copy; returns its exit code and its output. */
function run(...args: string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, { cwd: tree }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, output: stdout + stderr }),
    );
  });
}

const vitest = (path: string) => run('node_modules/vitest/vitest.mjs', 'run', '--project', 'unit', path);
const kit = (name: string) => run('edge/kit/main.ts', name);

describe('npm run plugin:new', () => {
  test('runs edge/kit/main.ts', () => {
    expect(JSON.parse(read('package.json')).scripts['plugin:new']).toBe('node edge/kit/main.ts');
  });

  test('writes a plugin that compiles, adds it to the lists, and its test passes in workerd', async () => {
    expect(await kit('bot_score')).toMatchObject({ code: 0 });
    expect(read('plugins/index.ts')).toContain("import botScore from './bot_score/index.ts';");
    expect(read('plugins/document.ts')).toContain('  bot_score: botScore,');
    expect(read('plugins/document.ts')).toContain("  '/bot-score',\n].flat();");
    expect(JSON.parse(read('sites/schema.json')).properties.features.properties).toHaveProperty('bot_score');
    expect(await run('node_modules/typescript/bin/tsc', '-p', 'edge')).toMatchObject({ code: 0, output: '' });
    const tested = await vitest('test/plugins/bot_score.test.ts');
    expect(tested.output).toMatch(/Tests.*2 passed/);
    expect(tested.code).toBe(0);
  });

  test.each(['', 'Bad', 'a-b', '../x', 'a__b', '_a', 'a'.repeat(41)])(
    'refuses the name "%s"',
    async (name) => {
      const before = read('plugins/index.ts');
      expect(await kit(name)).toMatchObject({ code: 2 });
      expect(read('plugins/index.ts')).toBe(before);
    },
  );

  test('a plugin with the path of another one fails the build, and the error names both', async () => {
    expect(await run('edge/bundle.ts')).toMatchObject({ code: 0 });
    expect(await kit('greedy')).toMatchObject({ code: 0 });
    const path = join(tree, 'plugins/greedy/index.ts');
    writeFileSync(path, readFileSync(path, 'utf8').replace(/path: '[^']*'/, "path: '/g/collect'"));
    const built = await run('edge/bundle.ts');
    expect(built.code).toBe(1);
    expect(built.output).toContain(
      'server_proxy (ALL /g/collect) and greedy (GET /g/collect) claim the same route',
    );
  });

  test('a plugin with the name of a member of /boot’s answer fails the build', async () => {
    expect(await kit('session')).toMatchObject({ code: 0 });
    const built = await run('edge/bundle.ts');
    expect(built.code).toBe(1);
    expect(built.output).toContain('Tagyard itself and session claim the member "session"');
  });

  test('refuses a name that is taken, and changes nothing', async () => {
    const before = read('plugins/multi_domain/index.ts') + read('plugins/index.ts');
    expect(await kit('multi_domain')).toMatchObject({ code: 2 });
    expect(read('plugins/multi_domain/index.ts') + read('plugins/index.ts')).toBe(before);
  });
});

describe('docs/plugins.md', () => {
  const text = readFileSync(join(project, 'docs/plugins.md'), 'utf8');
  const commands = [...text.matchAll(/^```sh\n([^`]*)^```/gm)].map(([, command = '']) =>
    command.trim().split(/\s+/),
  );
  const files = [...text.matchAll(/^```ts (\S+)\n([^`]*(?:`[^`]+)*?)^```/gm)];

  test('leads to a plugin that works in workerd', async () => {
    const [create = [], check = []] = commands;
    expect(create.slice(0, 3)).toEqual(['npm', 'run', 'plugin:new']);
    expect(await kit(create[3] ?? '')).toMatchObject({ code: 0 });
    expect(files).toHaveLength(3);
    for (const [, path = '', content = ''] of files) {
      mkdirSync(dirname(join(tree, path)), { recursive: true });
      writeFileSync(join(tree, path), content);
    }
    expect(await run('node_modules/typescript/bin/tsc', '-p', 'edge')).toMatchObject({ code: 0, output: '' });
    expect(check.slice(0, 3)).toEqual(['npx', 'vitest', 'run']);
    const tested = await vitest(check[3] ?? '');
    expect(tested.output).toMatch(/Tests.*4 passed/);
    expect(tested.code).toBe(0);
  });
});
