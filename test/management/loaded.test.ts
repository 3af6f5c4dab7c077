import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/** Loads a module, and writes the names of all packages that came with it. */
const LIST = `import { registerHooks } from 'node:module';
  const names = new Set();
  registerHooks({ load(url, context, next) {
    const name = /.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1];
    if (name) names.add(name);
    return next(url, context);
  } });
  await import(process.argv[1]);
  process.stdout.write([...names].join('\\n'));`;

test.each([
  ['management/app.ts', 'fastify', ['undici', '@duckdb/node-api', 'miniflare', 'nodemailer', 'handlebars']],
  ['sites/local/demo/shop/app.ts', 'fastify', ['undici']],
  ['gitops/kubernetes/client/client.ts', 'zod', ['undici', '@kubernetes/client-node']],
])('%s loads a large package only where it is used', async (entry, needed, unloaded) => {
  const url = new URL(`../../${entry}`, import.meta.url);
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', LIST, url.href];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
  });
  const loaded = stdout.split('\n');
  expect(loaded).toContain(needed);
  expect(unloaded.filter((name) => loaded.includes(name))).toEqual([]);
});
