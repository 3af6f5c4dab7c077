/** The files of a new plugin: text by path from the project's root. `name` is snake_case: `bot_score`. */
export function renderPlugin(name: string): Readonly<Record<string, string>> {
  const path = `/${name.replaceAll('_', '-')}`;
  return {
    [`plugins/${name}/config.ts`]: `import * as z from 'zod/mini';

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
  /** The text that the route answers. A site sets it under \`modules.${name}\`. */
  greeting: z._default(z.string().check(z.maxLength(100)), 'hello'),
});
`,
    [`plugins/${name}/index.ts`]: `import { definePlugin } from '../contract.ts';
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
`,
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

/** Edits the text of an existing file. Throws an `Error` if the file lacks the place to edit. */
type FileEdit = (text: string) => string;

/** By path, the edits that enter a new plugin into the existing lists. */
export function renderEdits(name: string): Readonly<Record<string, FileEdit>> {
  const path = `/${name.replaceAll('_', '-')}`;
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
      return after(listed, /export const FEATURE_FLAGS = \[[^\]]*/, `, '${name}'`);
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
