import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { connectEmbedded, connectPostgres } from './connect.ts';
import type { ConnectedDatabase } from './connected.ts';
import { type DatabaseVersion, fillTables, type Rows, readTables } from './copy.ts';

/** The first line of the input. */
interface Asked {
  /** PostgreSQL's URL, or the folder of an embedded database. */
  readonly database: string;
  /** What the copy has; `null`: it is to be made. */
  readonly version: DatabaseVersion | null;
}

/**
 * Makes a copy of a database on standard output, or fills one from standard input. Each line is a batch of rows in JSON, the
 * last one the version of a copy that was made, or empty in one that is read.
 */
export async function copyLines(): Promise<void> {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const { value = '' } = await lines.next();
  const { database, version } = JSON.parse(value) as Asked; // by `tagyard`
  const db = openDatabase(database);
  try {
    if (version !== null) await fillTables(db, version, rowsOf(lines));
    else await writeLine(await readTables(db, writeLine));
  } finally {
    await db.destroy();
  }
}

/** Rows are read and filled by the role that owns the schema. */
function openDatabase(database: string): ConnectedDatabase {
  return database.includes('://') ? connectPostgres(database, () => undefined) : connectEmbedded(database);
}

async function writeLine(value: unknown): Promise<void> {
  if (!process.stdout.write(`${JSON.stringify(value)}\n`)) await once(process.stdout, 'drain');
}

/** Throws if the input ends before its last line: then the process that writes it has ended. */
async function* rowsOf(lines: AsyncIterator<string>): AsyncGenerator<Rows> {
  for (;;) {
    const { value, done } = await lines.next();
    if (done) throw new Error('the copy ends too early');
    if (value === '') return;
    yield JSON.parse(value) as Rows; // by `readTables`
  }
}
