import { isMap, isNode, isScalar, isSeq, type ParsedNode, parseDocument } from 'yaml';
import { z } from 'zod';
import { manifestSchema } from './schema.ts';

type JsonSchema = z.core.JSONSchema.BaseSchema;

/**
 * JSON Schema (2020-12) of manifests, for editors. The description of each key is the comment above it in `example`
 * (`sites/example.yaml`), so the reference is written once. Rules in code (a domain listed twice, public suffixes)
 * are missing; `tagyard validate` checks them.
 */
export function manifestJsonSchema(example: string): JsonSchema {
  const schema = z.toJSONSchema(manifestSchema, { io: 'input' });
  schema.title = 'Tagyard site manifest';
  describe(schema, parseDocument(example).contents);
  return schema;
}

/**
 * The parser attaches the comment above the first key or item to the mapping or list itself. `above`: the comment that
 * it attached to the list whose first item is `node`.
 */
function describe(schema: unknown, node: ParsedNode | null | undefined, above?: string | null): void {
  if (!isSchema(schema)) return;
  if (isSeq(node)) {
    describe(schema.items, node.items[0], node.commentBefore);
  }
  if (!isMap(node)) return;
  node.items.forEach(({ key, value }, index) => {
    const property = schema.properties?.[String(isScalar(key) ? key.value : key)];
    if (!isSchema(property)) return;
    const first = index === 0 ? (node.commentBefore ?? above) : null;
    const comment = (isNode(key) ? key.commentBefore : null) ?? first;
    if (comment) property.description = paragraph(comment);
    describe(property, value);
  });
}

/** JSON Schema also allows booleans and lists of schemas here; the manifest's schema has neither. */
function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The last paragraph of a comment. A paragraph above it is a heading of the file, not part of the key's description. */
function paragraph(comment: string): string {
  const lines = comment.split('\n').map((line) => line.trim());
  return lines
    .slice(lines.lastIndexOf('') + 1)
    .join(' ')
    .trim();
}
