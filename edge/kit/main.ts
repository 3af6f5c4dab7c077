import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderEdits, renderPlugin } from './render.ts';

// `npm run plugin:new <name>` writes a working plugin with a test, and adds it to the lists.
const root = fileURLToPath(new URL('../..', import.meta.url));
const [name = ''] = process.argv.slice(2);
const files = renderPlugin(name);
const edits = renderEdits(name);

if (!/^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/.test(name) || name.length > 40) {
  fail(`A plugin's name is snake_case, such as bot_score; "${name}" is not`);
}
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
execFileSync(process.execPath, ['gitops/cli/write-schema.ts'], { cwd: root, stdio: 'inherit' });
console.log(`sites/schema.json\nNow: npx vitest run test/plugins/${name}.test.ts`);

function fail(reason: string): never {
  console.error(reason);
  process.exit(2);
}
