import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nameProblem, renderEdits, renderPlugin } from './render.ts';

// `npm run plugin:new <name>` writes a working plugin with a test, and adds it to the lists.
const root = fileURLToPath(new URL('../..', import.meta.url));
const [name = ''] = process.argv.slice(2);
const files = renderPlugin(name);
const edits = renderEdits(name);

const problem = nameProblem(name);
if (problem !== null) fail(problem);
const taken = [`plugins/${name}`, ...Object.keys(files)].find((path) => existsSync(resolve(root, path)));
if (taken !== undefined) fail(`${taken} exists already`);

// All edits are computed before the first file is written, so that a failing one changes nothing.
const edited = Object.entries(edits).map(([path, edit]) => [
  path,
  edit(readFileSync(resolve(root, path), 'utf8')),
]);
for (const [path = '', text = ''] of [...Object.entries(files), ...edited]) {
  mkdirSync(dirname(resolve(root, path)), { recursive: true });
  writeFileSync(resolve(root, path), text);
  console.log(path);
}
// The manifest's JSON Schema has every plugin's flag and options.
execFileSync(process.execPath, ['gitops/cli/generate/write-schema.ts'], { cwd: root, stdio: 'inherit' });
console.log(`sites/schema.json\nNow: npx vitest run test/plugins/${name}.test.ts`);

function fail(reason: string): never {
  console.error(reason);
  process.exit(2);
}
