import { isMap, isNode, isScalar, isSeq, type ParsedNode, parseDocument } from 'yaml';
import { z } from 'zod';
import { manifestSchema } from './schema.ts';

type JsonSchema = z.core.JSONSchema.BaseSchema;

/**
 * JSON Schema (2020-12) of what a person may write in a manifest, for editors. Each key's description is the comment
 * above it in `example` (`sites/example.yaml`), so that the reference is written once. Rules across keys (a domain
 * listed twice, public suffixes) are not in it; `tagyard validate` checks those too.
 */
export function manifestJsonSchema(example: string): JsonSchema {
  const schema = z.toJSONSchema(manifestSchema, { io: 'input' });
  schema.title = 'Tagyard site manifest';
  describe(schema, parseDocument(example).contents);
  return schema;
}

/** The parser gives a mapping or list the comment above its first key or item; `above` is what a list got so. */
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

/** A member of a schema may also be a boolean or a list of schemas; the manifest has no such. */
function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The last block of a comment: a heading above it, parted by an empty line, is the file's and not the key's. */
function paragraph(comment: string): string {
  const lines = comment.split('\n').map((line) => line.trim());
  return lines
    .slice(lines.lastIndexOf('') + 1)
    .join(' ')
    .trim();
}
