import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { manifestJsonSchema } from '../../sites/manifest/json-schema.ts';
import { parseManifest } from '../../sites/manifest/load.ts';

const read = (name: string) => readFileSync(new URL(`../../sites/${name}`, import.meta.url), 'utf8');
const example = read('example.yaml');

/** The part of JSON Schema that these tests read. */
interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

/** Every key of a schema as a dotted path with its description. A list has the keys of its items. */
function keys({ properties = {}, items }: Schema, prefix = ''): { path: string; description?: string }[] {
  const inside = Object.entries(properties).flatMap(([name, schema]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    const { description } = schema;
    return [{ path, ...(description === undefined ? {} : { description }) }, ...keys(schema, path)];
  });
  return items === undefined ? inside : [...inside, ...keys(items, prefix)];
}

/** The same paths for a value. */
function paths(value: unknown, prefix = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => paths(item, prefix));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    return [path, ...paths(inner, path)];
  });
}

describe('sites/example.yaml, the reference of the manifest', () => {
  const schema = manifestJsonSchema(example) as Schema; // The draft's full type is wider.

  test('is a valid manifest', () => {
    expect(parseManifest(example, 'example.yaml')).toMatchObject({ ok: true, manifest: { site: 'example' } });
  });

  test('has every key of the manifest', () => {
    const named = new Set(paths(parse(example)));
    expect(
      keys(schema)
        .map(({ path }) => path)
        .filter((path) => !named.has(path)),
    ).toEqual([]);
  });

  test('describes every key', () => {
    expect(keys(schema).filter(({ description = '' }) => description.length < 10)).toEqual([]);
  });
});

describe('sites/schema.json', () => {
  test('is up to date with `npm run generate:schema`', () => {
    expect(JSON.parse(read('schema.json'))).toEqual(JSON.parse(JSON.stringify(manifestJsonSchema(example))));
  });

  test('describes a key by the comment above it, without the heading of the file', () => {
    const text = '# heading\n#\n# more\n\n# The format.\nversion: 1\ntls:\n  # From where.\n  mode: files\n';
    expect(manifestJsonSchema(text)).toMatchObject({
      properties: {
        version: { description: 'The format.' },
        tls: { properties: { mode: { description: 'From where.' } } },
      },
    });
  });
});
