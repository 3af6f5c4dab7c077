import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { readJsonFile } from '../../base/json-file.ts';

const schema = z.object({ a: z.number().default(1) });

test('a file is read by its schema, and every fault is thrown', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tagyard-json-'));
  const file = join(dir, 'a.json');
  await expect(readJsonFile(file, schema)).rejects.toMatchObject({ code: 'ENOENT' });
  await writeFile(file, '{}');
  expect(await readJsonFile(file, schema)).toEqual({ a: 1 });
  await writeFile(file, '{');
  await expect(readJsonFile(file, schema)).rejects.toThrow(SyntaxError);
  await writeFile(file, '{ "a": "text" }');
  await expect(readJsonFile(file, schema)).rejects.toThrow(z.ZodError);
});
