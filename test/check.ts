import { availableParallelism } from 'node:os';
import { type Commands, runBeside } from './support/runner/commands.ts';

/** Each has a `tsconfig.json` with what its code may use. */
const TYPED = ['.', 'edge', 'plugins', 'management/console/app'];

/** Checks only what changed since the last run, and what uses it. A whole check takes 17 s of CPU time. */
const types: Commands = {
  title: 'types',
  programs: TYPED.map((folder) => {
    const kept = `node_modules/.cache/types/${folder === '.' ? 'root' : folder.replaceAll('/', '-')}.tsbuildinfo`;
    return ['tsc', '-p', folder, '--incremental', '--tsBuildInfoFile', kept];
  }),
};
const lint: Commands = { title: 'lint', programs: [['biome', 'check', '.']] };
/** Vitest's default is one worker fewer than there are cores: the tests took twice as long on two. */
const workers = `--maxWorkers=${availableParallelism() + 1}`;
const tests: Commands = {
  title: 'unit tests',
  programs: [['vitest', 'run', '--project', 'unit', workers]],
};

/**
 * `npm run check`: types, lint and unit tests in parallel. `types`: types alone. The exit code is 1 if one failed.
 */
const commands = process.argv[2] === 'types' ? [types] : [tests, types, lint];
if (process.stdout.isTTY) process.env.FORCE_COLOR = '1';
const failed = await runBeside(commands, {
  beside: availableParallelism(),
  print: (text) => console.log(text),
});
if (failed.length > 0) console.error(`Failed: ${failed.join(', ')}`);
process.exitCode = failed.length > 0 ? 1 : 0;
