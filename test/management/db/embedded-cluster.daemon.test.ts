import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connectEmbedded } from '../../../management/db/connect.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'tagyard-cluster-'));
});
afterEach(() => {
  rmSync(home, { recursive: true, force: true });
});

async function ask(dir: string, ...statements: string[]): Promise<unknown> {
  const db = connectEmbedded(dir);
  try {
    let rows: unknown;
    for (const statement of statements) ({ rows } = await sql.raw(statement).execute(db));
    return rows;
  } finally {
    await db.destroy();
  }
}

test.each<[string, (dir: string) => void]>([
  ['is created where there is none', () => undefined],
  [
    'is created anew where a first start was killed in the middle',
    (dir) => {
      mkdirSync(dir);
      mkdirSync(`${dir}.draft/base`, { recursive: true });
      writeFileSync(join(`${dir}.draft`, 'PG_VERSION'), '');
    },
  ],
])('an embedded cluster %s, and keeps what is written then', async (_what, prepare) => {
  const dir = join(home, 'management', 'pglite');
  mkdirSync(join(home, 'management'));
  prepare(dir);
  await ask(dir, 'create table kept (word text)', "insert into kept values ('ä')");
  expect(await ask(dir, 'select word from kept')).toEqual([{ word: 'ä' }]);
});
