import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { nameProblem, renderOwnPlugin } from '../../edge/kit/render.ts';
import { CliError } from './output/cli-error.ts';

/** Writes a new plugin with its test into the current folder, which is to be the plugin's own repository. */
export async function newPlugin(name: string): Promise<void> {
  const problem = nameProblem(name);
  if (problem !== null) throw new CliError(problem);
  const files = Object.entries(renderOwnPlugin(name));
  const taken = [name, ...files.map(([path]) => path)].find((path) => existsSync(path));
  if (taken !== undefined) throw new CliError(`${taken} exists already`);
  for (const [path, text] of files) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
    process.stdout.write(`${path}\n`);
  }
  process.stdout.write(`Now: npm install --save-dev esbuild, and node --test ${name}/index.test.ts\n`);
}
