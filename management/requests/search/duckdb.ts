import { mkdir } from 'node:fs/promises';
import type { DuckDBInstance, DuckDBType, DuckDBValue } from '@duckdb/node-api';
import { optional } from '../../../base/runtime/optional.ts';

/** DuckDB's memory. What needs more is written to the folder for temporary files. */
const MEMORY = '256MB';
const MOST_TEMPORARY = '2GB';

/** The values of a statement's parameters, by name. An array is a list of texts. */
export type Parameters = Readonly<Record<string, string | number | readonly string[]>>;

/** An embedded DuckDB without data of its own, which reads and writes the files of one folder. */
export interface DuckDb {
  /** Opens it, as the first `rows` does. Throws an `Error` if it can't be loaded or started; the next call tries again. */
  open(): Promise<void>;
  /** Rows as objects; numbers of 64 bits as `bigint`. */
  rows(sql: string, parameters: Parameters): Promise<Record<string, unknown>[]>;
  close(): void;
}

/**
 * DuckDB with access to `dir` only, and without extensions that it would download. It is loaded at its first use, because
 * it takes 50 MB and half a second, and most runs of management search nothing.
 */
export function duckDb(dir: string, temporary: string): DuckDb {
  let started: Promise<Started> | undefined;
  const start = () => {
    started ??= startDuckDb(dir, temporary).catch((error: unknown) => {
      started = undefined;
      throw error;
    });
    return started;
  };
  return {
    async open() {
      await start();
    },
    async rows(sql, parameters) {
      const { instance, bound } = await start();
      const connection = await instance.connect();
      try {
        const result = await connection.runAndReadAll(sql, ...bound(parameters));
        return result.getRowObjects();
      } finally {
        connection.closeSync();
      }
    },
    close: () => void started?.then(({ instance }) => instance.closeSync()),
  };
}

interface Started {
  readonly instance: DuckDBInstance;
  /** The values and types of a statement's parameters. */
  bound(parameters: Parameters): [Record<string, DuckDBValue>, Record<string, DuckDBType>];
}

/** Throws an `Error` that says how to install the package if it is missing. */
async function startDuckDb(dir: string, temporary: string): Promise<Started> {
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
  return {
    instance,
    bound(parameters) {
      const entries = Object.entries(parameters);
      const values = entries.map(([name, value]) => [name, isList(value) ? listValue(value) : value]);
      const types = entries.flatMap(([name, value]) => (isList(value) ? [[name, LIST(VARCHAR)]] : []));
      return [Object.fromEntries(values), Object.fromEntries(types)];
    },
  };
}

const isList = (value: unknown): value is readonly string[] => Array.isArray(value);
