import { expect, test } from 'vitest';
import { runBeside } from './support/runner/commands.ts';

const node = (script: string): [string, ...string[]] => [process.execPath, '-e', script];

test('commands that run in parallel print one block each, and every failure is named', async () => {
  const printed: string[] = [];
  const failed = await runBeside(
    [
      { title: 'first', programs: [node("console.log('one')"), node("console.log('two')")] },
      {
        title: 'second',
        programs: [node("console.error('wrong'); process.exit(3)"), node("console.log('unreached')")],
      },
      { title: 'third', programs: [['no-such-program']] },
      { title: 'fourth', programs: [node('process.abort()')] },
    ],
    { beside: 2, print: (text) => printed.push(text.replace(/after \d+\.\d s/, 'after 1 s')) },
  );
  expect(failed).toEqual(['second', 'third', 'fourth']);
  expect(printed.sort()).toEqual([
    '== first: passed after 1 s\none\ntwo',
    expect.stringMatching(/^== fourth: failed after 1 s\n[\s\S]*SIGABRT/),
    '== second: failed after 1 s\nwrong',
    expect.stringMatching(/^== third: failed after 1 s\n.*no-such-program/),
  ]);
});
