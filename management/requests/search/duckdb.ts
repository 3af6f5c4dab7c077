import { mkdir } from 'node:fs/promises';
import type { DuckDBConnection } from '@duckdb/node-api';
import { optional } from '../../../gitops/base/runtime/optional.ts';

/** DuckDB's memory. What needs more is written to the folder for temporary files. */
const MEMORY = '256MB';
const MOST_TEMPORARY = '2GB';

/** The values of a statement's parameters, by name. An array is a list of texts. */
export type Parameters = Readonly<Record<string, string | number | readonly string[]>>;

/** An embedded DuckDB without data of its own, which reads and writes the files of one folder. */
export interface DuckDb {
  /** Rows as objects; numbers of 64 bits as `bigint`. */
  rows(sql: string, parameters: Parameters): Promise<Record<string, unknown>[]>;
  close(): void;
}

/**
 * Opens DuckDB with access to `dir` only, and without extensions that it would download. Throws an `Error` that says how
 * to install the package if it is missing.
 */
export async function openDuckDb(dir: string, temporary: string): Promise<DuckDb> {
  const { DuckDBInstance, LIST, VARCHAR, listValue } = await optional(
    '@duckdb/node-api',
    () => import('@duckdb/node-api'),
  );
  await mkdir(temporary, { recursive: true });
  const instance = await DuckDBInstance.create(':memory:', {
    threads: '1',
    memory_limit: MEMORY,
    temp_directory: temporary,
    max_temp_directory_size: MOST_TEMPORARY,
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    preserve_insertion_order: 'false',
  });
  const first = await instance.connect();
  // No parameters are possible here. The folder is a setting of the installation.
  await first.run(`set allowed_directories = ['${dir.replaceAll("'", "''")}']`);
  await first.run('set enable_external_access = false');
  await first.run('set lock_configuration = true');
  first.closeSync();

  async function withConnection<Result>(work: (connection: DuckDBConnection) => Promise<Result>) {
    const connection = await instance.connect();
    try {
      return await work(connection);
    } finally {
      connection.closeSync();
    }
  }
  return {
    rows: async (sql, parameters) =>
      await withConnection(async (connection) => {
        const entries = Object.entries(parameters);
        const values = entries.map(([name, value]) => [name, isList(value) ? listValue(value) : value]);
        const types = entries.flatMap(([name, value]) => (isList(value) ? [[name, LIST(VARCHAR)]] : []));
        const result = await connection.runAndReadAll(
          sql,
          Object.fromEntries(values),
          Object.fromEntries(types),
        );
        return result.getRowObjects();
      }),
    close: () => instance.closeSync(),
  };
}

const isList = (value: unknown): value is readonly string[] => Array.isArray(value);
