import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { Thread } from '../../../sites/local/thread.ts';

const dir = mkdtempSync(join(tmpdir(), 'tagyard-thread-'));
afterAll(() => rmSync(dir, { recursive: true }));

let count = 0;
/** Starts a thread with the script; `log` reads its log file. */
function startScript(text: string) {
  const script = join(dir, `${count}.mjs`);
  const logFile = join(dir, `${count}.log`);
  count += 1;
  writeFileSync(script, `import { parentPort } from 'node:worker_threads';\n${text}`);
  const thread = new Thread({ name: 'test', script, env: { COLOUR: 'red' }, logFile });
  return { thread, log: () => readFileSync(logFile, 'utf8') };
}
const STOPPABLE = "parentPort.once('message', () => { console.log('stopping'); process.exit(0); });";

test('a thread ends by itself after SIGTERM, with its output in the log', async () => {
  const { thread, log } = startScript(`${STOPPABLE}
    console.error(process.env.COLOUR);
    parentPort.postMessage({ type: 'ready' });`);
  expect(await once(thread, 'message')).toEqual([{ type: 'ready' }]);
  expect([thread.exitCode, thread.signalCode]).toEqual([null, null]);
  thread.kill('SIGTERM');
  expect(await once(thread, 'exit')).toEqual([0, null]);
  expect(log()).toBe('red\nstopping\n');
});

test('a thread is ended by SIGKILL, even while it computes', async () => {
  const { thread } = startScript("parentPort.postMessage('x'); for (;;);");
  await once(thread, 'message');
  thread.kill('SIGTERM');
  thread.kill('SIGKILL');
  expect(await once(thread, 'exit')).toEqual([null, 'SIGKILL']);
});

test('a thread ends with an error that nothing catches, and its log has the error', async () => {
  const { thread, log } = startScript("setImmediate(() => { throw new TypeError('a fault'); });");
  expect(await once(thread, 'exit')).toEqual([1, null]);
  expect(log()).toMatch(/^TypeError: a fault\n +at /);
});
