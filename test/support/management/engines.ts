import type { PGlite } from '@electric-sql/pglite';

/** Engines that no database uses, with the content that `make` gave them. */
const idle: Engine[] = [];
/** The maximum number of engines that are kept: each has 200 MB. */
const MOST_IDLE = 2;
/** An engine never removes its files of earlier transactions, so it is not used for ever. */
const MOST_USES = 40;

/** A new engine takes 0.4 s of CPU time, and emptying a used one a twentieth of that. */
class Engine {
  readonly #pglite: PGlite;
  readonly #schema: string;
  /** The rows of tables that aren't empty at first, as JSON by table. */
  readonly #rows: ReadonlyMap<string, string>;
  #uses = 0;

  private constructor(pglite: PGlite, schema: string, rows: ReadonlyMap<string, string>) {
    this.#pglite = pglite;
    this.#schema = schema;
    this.#rows = rows;
  }

  static async from(pglite: PGlite): Promise<Engine> {
    const rows = new Map<string, string>();
    for (const table of await filledTables(pglite)) {
      const found = await pglite.query<{ rows: string }>(`select json_agg(t)::text as rows from ${table} t`);
      rows.set(table, found.rows[0]?.rows ?? '[]');
    }
    return new Engine(pglite, await schemaOf(pglite), rows);
  }

  /** The engine as one database. Closing the database gives the engine back; its later queries throw. */
  lend(): PGlite {
    this.#uses += 1;
    let isClosed = false;
    let running = 0;
    let closing: Promise<void> | undefined;
    const close = () => {
      isClosed = true;
      closing ??= this.#giveBack(running === 0);
      return closing;
    };
    return new Proxy(this.#pglite, {
      get: (pglite, name) => {
        if (name === 'closed') return isClosed;
        if (name === 'close') return close;
        if (isClosed) throw new Error('the database is closed');
        const value: unknown = Reflect.get(pglite, name, pglite);
        if (typeof value !== 'function') return value;
        if (name !== 'query' && name !== 'transaction') return value.bind(pglite);
        return async (...args: unknown[]) => {
          running += 1;
          try {
            return await value.apply(pglite, args);
          } finally {
            running -= 1;
          }
        };
      },
    });
  }

  /** Closes the engine, unless it can be used again. */
  async #giveBack(isQuiet: boolean): Promise<void> {
    let isReset = false;
    try {
      isReset = isQuiet && this.#uses < MOST_USES && idle.length < MOST_IDLE && (await this.#reset());
    } finally {
      // Others may have been given back meanwhile.
      if (isReset && idle.length < MOST_IDLE) idle.push(this);
      else await this.#pglite.close();
    }
  }

  /** Restores the first content. `false`: it can't, because the schema was changed. */
  async #reset(): Promise<boolean> {
    const engine = this.#pglite;
    await engine.exec('discard all');
    if ((await schemaOf(engine)) !== this.#schema) return false;
    const filled = await filledTables(engine);
    await engine.transaction(async (all) => {
      await all.exec(`set local session_replication_role = replica;
        truncate ${[...new Set([...filled, ...this.#rows.keys()])].join()} cascade;
        select setval(oid, seqstart, false) from pg_sequence join pg_class on pg_class.oid = seqrelid`);
      for (const [table, rows] of this.#rows)
        await all.query(
          `insert into ${table} overriding system value select * from json_populate_recordset(null::${table}, $1)`,
          [rows],
        );
    });
    return true;
  }
}

/** An engine that a later call may get again once it is closed, so the engines of every `make` must be equal. */
export async function lendEngine(make: () => Promise<PGlite>): Promise<PGlite> {
  const engine = idle.pop() ?? (await Engine.from(await make()));
  return engine.lend();
}

/** Tables that have pages: those with rows, and those that had some since they were last truncated. */
async function filledTables(pglite: PGlite): Promise<string[]> {
  const { rows } = await pglite.query<{ name: string }>(
    `select oid::regclass::text as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind = 'r' and pg_relation_size(oid) > 0`,
  );
  return rows.map(({ name }) => name);
}

const CATALOGUES = [
  'pg_attrdef',
  'pg_attribute',
  'pg_auth_members',
  'pg_authid',
  'pg_constraint',
  'pg_database',
  'pg_db_role_setting',
  'pg_default_acl',
  'pg_enum',
  'pg_extension',
  'pg_index',
  'pg_namespace',
  'pg_policy',
  'pg_proc',
  'pg_rewrite',
  'pg_sequence',
  'pg_trigger',
  'pg_type',
];
/** Columns of pg_class. Its other columns change with the rows of a table, or together with a catalogue above. */
const OF_RELATIONS =
  'oid, relname, relowner, relacl, reloptions, relpersistence, relreplident, relrowsecurity, relforcerowsecurity';

/**
 * A digest of the catalogues above and of these columns. Each change of them changes the digest, and nothing else does:
 * a new or changed row has a higher `xmin` than all rows before, and after a deletion there are fewer rows. Other
 * catalogues are not included, such as those of comments, operators, casts and publications.
 */
async function schemaOf(pglite: PGlite): Promise<string> {
  const changed = CATALOGUES.map(
    (name) => `select concat_ws(' ', '${name}', count(*), max(xmin::text::int8)) as item from ${name}`,
  );
  const { rows } = await pglite.query<{ digest: string }>(
    `select md5(string_agg(item, ',' order by item)) as digest from (
       ${changed.join(' union all ')}
       union all select row(${OF_RELATIONS})::text from pg_class where relnamespace = 'public'::regnamespace
     ) as items`,
  );
  return rows[0]?.digest ?? '';
}
