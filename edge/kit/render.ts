/** Text of a new plugin's files by path, from the project's root. `name` is snake_case: `bot_score`. */
export function renderPlugin(name: string): Readonly<Record<string, string>> {
  const path = `/${name.replaceAll('_', '-')}`;
  return {
    [`plugins/${name}/config.ts`]: `import * as z from 'zod/mini';

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
  /** What the route answers; a site sets it under \`modules.${name}\`. */
  greeting: z._default(z.string().check(z.maxLength(100)), 'hello'),
});
`,
    [`plugins/${name}/index.ts`]: `import { definePlugin } from '../contract.ts';
import { config } from './config.ts';

/** On where a site's \`features.${name}\` is true. */
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
import { type Stage, startStage } from '../edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage.close());

describe('GET ${path}', () => {
  test('answers with the site’s own options', async () => {
    const site = await stage.site({
      features: { ${name}: true },
      modules: { ${name}: { greeting: 'good morning' } },
    });
    expect(await stage.send(site.host, '${path}')).toMatchObject({
      status: 200,
      json: { site: site.id, greeting: 'good morning' },
    });
  });

  test('is nobody’s where the flag is off', async () => {
    const site = await stage.site();
    expect((await stage.send(site.host, '${path}')).json.code).toBe('not_found');
  });
});
`,
  };
}

/** An edit of a file that stands: its text, or an error that names what it looked for in vain. */
export type FileEdit = (text: string) => string;

/** What the lists need to know of a new plugin, by path. */
export function renderEdits(name: string): Readonly<Record<string, FileEdit>> {
  const variable = name.replace(/_(\w)/g, (_match, letter: string) => letter.toUpperCase());
  return {
    'plugins/index.ts': (text) =>
      after(
        addImport(text, `import ${variable} from './${name}/index.ts';`),
        /export const PLUGINS: readonly Plugin\[\] = \[[^\]]*/,
        `  ${variable},\n`,
      ),
    'plugins/document.ts': (text) =>
      after(
        after(
          addImport(text, `import { config as ${variable} } from './${name}/config.ts';`),
          /export const MODULES = \{[^}]*/,
          `  ${name}: ${variable},\n`,
        ),
        /export const FEATURE_FLAGS = \[[^\]]*/,
        `, '${name}'`,
      ),
    'sites/example.yaml': (text) =>
      `${after(text, /^features:\n(?: .*\n)+/m, `  # What \`modules.${name}\` sets.\n  ${name}: true\n`).trimEnd()}
  # What \`features.${name}\` turns on.
  ${name}:
    # \`false\` turns it off. Default: true.
    enabled: true
    # What its route answers. Default: hello.
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

/** Among the imports, by the order of their paths, as the formatter wants it. */
function addImport(text: string, line: string): string {
  const from = (statement: string) => /from '(.*)'/.exec(statement)?.[1] ?? '';
  const lines = text.split('\n');
  const next = lines.findIndex((each) => from(each).startsWith('./') && from(each) > from(line));
  const last = lines.findLastIndex((each) => each.startsWith('import '));
  return lines.toSpliced(next === -1 ? last + 1 : next, 0, line).join('\n');
}
