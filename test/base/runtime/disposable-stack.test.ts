import { execa } from 'execa';
import { describe, expect, test } from 'vitest';

const MODULE = new URL('../../../base/runtime/disposable-stack.ts', import.meta.url);

/** Runs a script with Node's own `AsyncDisposableStack` (`own`) or without it. Returns what it printed. */
async function run(script: string, own: boolean): Promise<string> {
  const remove = own ? '' : 'delete globalThis.AsyncDisposableStack;';
  const source = `${remove} await import(${JSON.stringify(MODULE.href)});
    const stack = new AsyncDisposableStack();
    const say = (text) => async () => console.log(text);
    ${script}`;
  const { stdout } = await execa(process.execPath, ['--input-type=module', '--eval', source]);
  return stdout;
}

describe.each([
  ['Node’s own stack', true],
  ['the stack for older versions', false],
])('%s', (_name, own) => {
  test.each([
    [
      'disposes in reverse order, once',
      `stack.defer(say('a')); stack.adopt('b', (it) => say(it)()); stack.use({ [Symbol.asyncDispose]: say('c') });
       stack.use({ [Symbol.dispose]() { console.log('d'); } }); stack.use(null);
       await stack.disposeAsync(); await stack.disposeAsync(); console.log(stack.disposed);`,
      'd\nc\nb\na\ntrue',
    ],
    [
      'disposes the others even if one fails, and throws its error',
      `stack.defer(say('a')); stack.defer(async () => { throw new Error('b failed'); });
       await stack.disposeAsync().catch((error) => console.log(error.message));`,
      'a\nb failed',
    ],
    [
      'moves its content, and takes no more',
      `stack.defer(say('a')); const moved = stack.move(); await stack.disposeAsync();
       try { stack.defer(say('b')); } catch (error) { console.log(error.name); }
       await moved.disposeAsync();`,
      'ReferenceError\na',
    ],
  ])('%s', async (_case, script, printed) => {
    expect(await run(script, own)).toBe(printed);
  });
});
