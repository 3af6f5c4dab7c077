import { readFile } from 'node:fs/promises';
import type { z } from 'zod';

/** Reads a JSON file by its schema. Throws the file system's error, a `SyntaxError` or a `ZodError`. */
export async function readJsonFile<Schema extends z.ZodType>(
  path: string,
  schema: Schema,
): Promise<z.output<Schema>> {
  return schema.parse(JSON.parse(await readFile(path, 'utf8')));
}
