import { descend, isNode, parse, type SourceFile } from './source.ts';

/** Files in which the keys of an object are names of settings. */
const SCHEMA_FILE = /\/(?:env|settings)\.ts$/;
const NAME = /^[A-Z][A-Z0-9]*_[A-Z0-9_]+$/;

/**
 * Environment variables that sources read: `process.env.NAME`, the keys of the schema in an `env.ts` or `settings.ts`,
 * and names that are given as data (`variable: 'NAME'`).
 */
export function settingsOf(files: readonly SourceFile[]): string[] {
  const names = files.flatMap((file) =>
    parse(file).flatMap((node) => {
      if (node.type === 'MemberExpression') {
        const object = isNode(node.object) ? file.text.slice(node.object.start, Number(node.object.end)) : '';
        return object === 'process.env' && node.computed !== true ? nameOf(node.property) : [];
      }
      if (node.type !== 'Property') return [];
      const [key] = nameOf(node.key);
      if (key === 'variable' && isNode(node.value)) return descend(node.value).flatMap(nameOf);
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

/** The names that `.env.example` explains, commented out or not. */
export function settingsIn(example: string): string[] {
  return [...example.matchAll(/^(?:# )?([A-Z][A-Z0-9_]+)=/gm)].flatMap(([, name]) => name ?? []);
}
