/** The files of a new plugin: text by path from the project's root. `name` is snake_case: `bot_score`. */
export function renderPlugin(name: string): Readonly<Record<string, string>> {
  const path = pathOf(name);
  return {
    [`plugins/${name}/config.ts`]: renderConfig(name),
    [`plugins/${name}/index.ts`]: renderIndex(name, '../contract.ts'),
    [`test/plugins/${name}.test.ts`]: `import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stage, startStage } from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage.close());

describe('GET ${path}', () => {
  test('answers with the site’s options', async () => {
    const site = await stage.site({
      features: { ${name}: true },
      modules: { ${name}: { greeting: 'good morning' } },
    });
    expect(await stage.send(site.host, '${path}')).toMatchObject({
      status: 200,
      json: { site: site.id, greeting: 'good morning' },
    });
  });

  test('is unknown where the flag is off', async () => {
    const site = await stage.site();
    expect((await stage.send(site.host, '${path}')).json.code).toBe('not_found');
  });
});
`,
  };
}

/** The files of a new plugin in a repository of its own, whose test runs by `node --test`. */
export function renderOwnPlugin(name: string): Readonly<Record<string, string>> {
  return {
    [`${name}/config.ts`]: renderConfig(name),
    [`${name}/index.ts`]: renderIndex(name, 'tagyard/plugin'),
    [`${name}/index.test.ts`]: `import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Stage, startStage } from 'tagyard/plugin/kit';

let stage: Stage;
before(async () => {
  stage = await startStage({ plugins: [new URL('index.ts', import.meta.url)] });
});
after(() => stage.close());

test('answers with the site’s options', async () => {
  const site = await stage.site({
    features: { ${name}: true },
    modules: { ${name}: { greeting: 'good morning' } },
  });
  const { status, json } = await stage.send(site.host, '${pathOf(name)}');
  assert.equal(status, 200);
  assert.deepEqual(json, { site: site.id, greeting: 'good morning' });
});

test('is unknown where the flag is off', async () => {
  const site = await stage.site();
  assert.equal((await stage.send(site.host, '${pathOf(name)}')).json.code, 'not_found');
});
`,
  };
}

/** Why a plugin can't have this name; `null`: it can. */
export function nameProblem(name: string): string | null {
  if (/^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/.test(name) && name.length <= 40) return null;
  return `A plugin's name is snake_case with at most 40 characters, such as bot_score; "${name}" is not`;
}

const pathOf = (name: string): string => `/${name.replaceAll('_', '-')}`;

function renderConfig(name: string): string {
  return `import * as z from 'zod/mini';

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
  /** The text that the route answers. A site sets it under \`modules.${name}\`. */
  greeting: z._default(z.string().check(z.maxLength(100)), 'hello'),
});
`;
}

/** `contract`: what the plugin imports `definePlugin` from. */
function renderIndex(name: string, contract: string): string {
  const path = pathOf(name);
  return `import { definePlugin } from '${contract}';
import { config } from './config.ts';

/** Enabled if a site's \`features.${name}\` is true. */
export default definePlugin({
  name: '${name}',
  kind: 'optional',
  flag: '${name}',
  config,
  routes: [
    {
      method: 'GET',
      path: '${path}',
      handle: (_input, { settings, site }) =>
        Response.json({ site: site.siteId, greeting: settings.greeting }),
    },
  ],
});
`;
}

/** Edits the text of an existing file. Throws an `Error` if the file lacks the place to edit. */
type FileEdit = (text: string) => string;

/** By path, the edits that enter a new plugin into the existing lists. */
export function renderEdits(name: string): Readonly<Record<string, FileEdit>> {
  const path = pathOf(name);
  const variable = name.replace(/_(\w)/g, (_match, letter: string) => letter.toUpperCase());
  return {
    'plugins/index.ts': (text) =>
      after(
        addImport(text, `import ${variable} from './${name}/index.ts';`),
        /export const PLUGINS: readonly Plugin\[\] = \[[^\]]*/,
        `  ${variable},\n`,
      ),
    'plugins/document.ts': (text) => {
      const imported = addImport(text, `import { config as ${variable} } from './${name}/config.ts';`);
      const reserved = after(imported, /export const ROUTE_PATHS.*\[\n[^\]]*/, `  '${path}',\n`);
      const listed = after(reserved, /export const MODULES = \{[^}]*/, `  ${name}: ${variable},\n`);
      return after(listed, /export const FEATURE_FLAGS = \[[^\]]*?(?=,?\s*\])/, `, '${name}'`);
    },
    'sites/example.yaml': (text) =>
      `${after(text, /^features:\n(?: .*\n)+/m, `  # Enables the plugin, with the options of \`modules.${name}\`.\n  ${name}: true\n`).trimEnd()}
  # The options of the plugin that \`features.${name}\` enables.
  ${name}:
    # \`false\` disables the plugin. Default: true.
    enabled: true
    # The text that its route answers. Default: hello.
    greeting: hello
`,
  };
}

function after(text: string, place: RegExp, addition: string): string {
  const found = place.exec(text);
  if (found === null) throw new Error(`nothing in the file matches ${place}`);
  const at = found.index + found[0].length;
  return text.slice(0, at) + addition + text.slice(at);
}

/** Inserts an import in the order of the paths, as the formatter requires it. */
function addImport(text: string, line: string): string {
  const from = (statement: string) => /from '(.*)'/.exec(statement)?.[1] ?? '';
  const lines = text.split('\n');
  const next = lines.findIndex((each) => from(each).startsWith('./') && from(each) > from(line));
  const last = lines.findLastIndex((each) => each.startsWith('import '));
  return lines.toSpliced(next === -1 ? last + 1 : next, 0, line).join('\n');
}
