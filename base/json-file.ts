import { readFile } from 'node:fs/promises';
import { z } from 'zod';

/** Reads a JSON file by its schema. Throws the file system's error, a `SyntaxError` or a `ZodError`. */
export async function readJsonFile<Schema extends z.ZodType>(
  path: string,
  schema: Schema,
): Promise<z.output<Schema>> {
  return schema.parse(JSON.parse(await readFile(path, 'utf8')));
}

/** `readableFrom`: the oldest version whose reader can still use it; missing: its own. */
const versioned = z.looseObject({ version: z.number(), readableFrom: z.number().optional() });

/**
 * Reads what a process has saved for the next one; `null`: nothing, or it can't be read. Throws if a newer version of
 * Tagyard has saved it: this one would take it for lost, and overwrite it.
 */
export async function readSaved<Schema extends z.ZodObject<{ version: z.ZodLiteral<number> }>>(
  path: string,
  schema: Schema,
): Promise<z.output<Schema> | null> {
  const saved = await readJsonFile(path, z.unknown()).catch(() => null);
  const { data } = versioned.safeParse(saved);
  if (data === undefined) return null;
  const own = schema.shape.version.value;
  if ((data.readableFrom ?? data.version) > own) {
    throw new Error(
      `${path} was written by a newer version of Tagyard: run that version, or move the file away (docs/stores.md says what is lost then)`,
    );
  }
  return schema.safeParse({ ...data, version: Math.min(data.version, own) }).data ?? null;
}
