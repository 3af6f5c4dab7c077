import { execa } from 'execa';
import { limit } from '../../../base/limit.ts';

/** A title, and programs of installed packages that run one after another, each with its arguments. */
export interface Commands {
  readonly title: string;
  readonly programs: readonly (readonly [program: string, ...args: string[]])[];
}

/**
 * Runs the commands in parallel, at most `beside` at a time, and starts them in their order. Prints the output of
 * each as one block when it ends, with its seconds. Resolves to the titles of those that failed.
 */
export async function runBeside(
  commands: readonly Commands[],
  { beside, print }: { readonly beside: number; readonly print: (text: string) => void },
): Promise<string[]> {
  const run = limit(beside);
  const failed = await Promise.all(
    commands.map(({ title, programs }) =>
      run(async () => {
        const started = performance.now();
        const outputs: string[] = [];
        let isFailed = false;
        for (const [program, ...args] of programs) {
          const ended = await execa(program, args, { all: true, preferLocal: true, reject: false });
          outputs.push(ended.all ?? '');
          isFailed = ended.failed;
          // It was not started, or a signal ended it.
          if (ended.failed && ended.exitCode === undefined) outputs.push(String(ended.shortMessage));
          if (isFailed) break;
        }
        const seconds = ((performance.now() - started) / 1000).toFixed(1);
        const heading = `== ${title}: ${isFailed ? 'failed' : 'passed'} after ${seconds} s`;
        print([heading, ...outputs.filter((text) => text !== '')].join('\n'));
        return isFailed ? [title] : [];
      }),
    ),
  );
  return failed.flat();
}
