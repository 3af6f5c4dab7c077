import { descend, isNode, parse, type SourceFile } from './source.ts';

/** Files in which the keys of an object are names of settings. */
const SCHEMA_FILE = /\/(?:env|settings)\.ts$/;
/** The bindings of a worker. */
const WORKER = /^edge\/(?:verification\/)?worker\.ts$/;
const NAME = /^[A-Z][A-Z0-9]*_[A-Z0-9_]+$/;

/**
 * Environment variables that sources read: `process.env.NAME`, the keys of the schema in an `env.ts` or `settings.ts`,
 * names that are given as data (`variable: 'NAME'`), and the text members of a worker's
 * `Env`, with what plugins declare (`variables: ['NAME']`).
 */
export function settingsOf(files: readonly SourceFile[]): string[] {
  const names = files.flatMap((file) =>
    parse(file).flatMap((node) => {
      if (node.type === 'MemberExpression') {
        const object = isNode(node.object) ? file.text.slice(node.object.start, Number(node.object.end)) : '';
        return object === 'process.env' && node.computed !== true ? nameOf(node.property) : [];
      }
      if (node.type === 'TSPropertySignature' && WORKER.test(file.path)) {
        return file.text.slice(node.start, Number(node.end)).includes('string') ? nameOf(node.key) : [];
      }
      if (node.type !== 'Property') return [];
      const [key] = nameOf(node.key);
      if ((key === 'variable' || key === 'variables') && isNode(node.value))
        return descend(node.value).flatMap(nameOf);
      return SCHEMA_FILE.test(file.path) && key !== undefined ? [key] : [];
    }),
  );
  return [...new Set(names)].filter((name) => NAME.test(name)).sort();
}

/** An identifier's name or a literal's text. */
function nameOf(node: unknown): string[] {
  const text = isNode(node) ? (node.name ?? node.value) : undefined;
  return typeof text === 'string' ? [text] : [];
}

/** The names in `.env.example`, commented out or not. */
export function settingsIn(example: string): string[] {
  return [...example.matchAll(/^(?:# )?([A-Z][A-Z0-9_]+)=/gm)].flatMap(([, name]) => name ?? []);
}
