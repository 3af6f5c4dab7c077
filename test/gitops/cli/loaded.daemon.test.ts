import { afterAll, beforeAll, expect, test } from 'vitest';
import { tagyardOf } from '../../support/cli/command.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';

let daemon: MemoryDaemon;
let url: string;
beforeAll(async () => {
  daemon = await memoryDaemon();
  url = await daemon.app.listen({ host: '127.0.0.1', port: 0 });
  await daemon.push('one', daemon.manifest('one', 0));
  await daemon.reaches('one', 'Ready');
});
afterAll(() => daemon.close());

/** Writes the URLs of all loaded modules to standard error at the end. */
const RECORD = `import { registerHooks } from 'node:module';
  const urls = [];
  registerHooks({ load(url, context, next) { urls.push(url); return next(url, context); } });
  process.on('exit', () => process.stderr.write(urls.join('\\n')));`;
const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(RECORD)}`;

/** A verb must load fewer files than this, including those of its libraries, but without zod's. */
const MOST = 45;

test.each(['status', 'status one', 'plan', 'history one'])('%s loads little', async (command) => {
  const { exitCode, stdout, stderr } = await tagyardOf(url)(command.split(' '), { NODE_OPTIONS });
  expect({ exitCode, stdout }).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/Ready|nothing|By hand/),
  });
  const loaded = stderr.split('\n').filter((name) => name.startsWith('file:'));
  expect(loaded.filter((name) => !name.includes('/zod/')).length).toBeLessThan(MOST);
});
