import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import getPort from 'get-port';
import pg from 'pg';
import { connectPostgres } from '../../../management/db/connect.ts';
import type { ConnectedDatabase } from '../../../management/db/connected.ts';
import type { Database } from '../../../management/db/database.ts';
import { migrate } from '../../../management/db/migrate.ts';
import { PATH_WITH_SBIN, POSTGRESQL_BIN } from '../components.ts';
import { eventually } from '../eventually.ts';

const run = promisify(execFile);

export interface DatabaseUrls {
  readonly owner: string;
  readonly api: string;
}

/** A PostgreSQL cluster for one suite, on loopback. The server refuses root: for root, it runs as `postgres`. */
export class PostgresqlFixture {
  readonly #dir: string;
  readonly #launch: () => ChildProcess;
  readonly #port: number;
  #server: ChildProcess;
  #databases = 0;
  #migrated: Promise<string> | undefined;

  private constructor(dir: string, launch: () => ChildProcess, port: number) {
    this.#dir = dir;
    this.#launch = launch;
    this.#port = port;
    this.#server = launch();
  }

  static async start(): Promise<PostgresqlFixture> {
    const bin = (name: string) => join(POSTGRESQL_BIN ?? '', name);
    const dir = await mkdtemp(join(tmpdir(), 'tagyard-postgresql-'));
    const asRoot = userInfo().uid === 0;
    const identity = asRoot ? await identityOf('postgres') : null;
    const data = join(dir, 'data');
    await mkdir(data);
    await chmod(dir, 0o755);
    if (identity !== null) await chown(data, identity.uid, identity.gid);
    const options = ['--auth=trust', '--username=tagyard', '--encoding=UTF8', '--locale=C', '--no-sync'];
    await run(bin('initdb'), ['-D', data, ...options], { ...identity, cwd: data });
    const port = await getPort({ host: '127.0.0.1' });
    const settings = [
      'listen_addresses=127.0.0.1',
      `port=${port}`,
      'unix_socket_directories=',
      'fsync=off',
      'max_connections=120',
    ];
    const args = ['-D', data, ...settings.flatMap((one) => ['-c', one])];
    const launch = () => spawn(bin('postgres'), args, { ...identity, cwd: data, stdio: 'ignore' });
    const fixture = new PostgresqlFixture(dir, launch, port);
    await fixture.#answers();
    await fixture.#query('create role api login');
    return fixture;
  }

  /** A new, empty database: the URL for its owner, and that for a role that owns nothing. */
  async database(): Promise<DatabaseUrls> {
    return await this.#create('template1');
  }

  async #create(template: string): Promise<DatabaseUrls> {
    const name = `suite_${++this.#databases}`;
    await this.#query(`create database ${name} template ${template}`);
    return { owner: this.#url(name), api: this.#url(name, 'api') };
  }

  /** Makes a migrated database to copy; returns its name. All migrations take half a second, a copy a tenth of that. */
  async #migrate(): Promise<string> {
    const name = 'migrated';
    await this.#query(`create database ${name}`);
    const db = connectPostgres(this.#url(name), raise);
    await migrate(db);
    await db.destroy();
    return name;
  }

  /** All rows of all tables of a database as text, by table. */
  async dump({ owner }: Pick<DatabaseUrls, 'owner'>): Promise<Map<string, string>> {
    const client = new pg.Client({ connectionString: owner });
    await client.connect();
    try {
      const { rows } = await client.query(
        "select table_name as name from information_schema.tables where table_schema = 'public'",
      );
      const dump = new Map<string, string>();
      for (const { name } of rows) {
        const all = await client.query(`select one::text as row from "${name}" as one`);
        dump.set(String(name), all.rows.map(({ row }) => String(row)).join('\n'));
      }
      return dump;
    } finally {
      await client.end();
    }
  }

  /** A copy of a database, as pg_dump makes it. */
  async backUp({ owner }: Pick<DatabaseUrls, 'owner'>): Promise<string> {
    const file = join(this.#dir, `${new URL(owner).pathname.slice(1)}.sql`);
    await run(join(POSTGRESQL_BIN ?? '', 'pg_dump'), ['--clean', '--if-exists', `--file=${file}`, owner]);
    return file;
  }

  /** Puts a copy in place of what the database has now, under its open connections. */
  async restore({ owner }: Pick<DatabaseUrls, 'owner'>, copy: string): Promise<void> {
    const options = ['--quiet', '--single-transaction', '--set=ON_ERROR_STOP=1', `--file=${copy}`];
    // A transaction of a connection may use the tables in another order, so that the server ends one of both.
    await eventually(() => run(join(POSTGRESQL_BIN ?? '', 'psql'), [...options, owner]));
  }

  /** Connections to a new, migrated database for a `World`, of the API's role and of the privileged one. */
  async connections(
    onIdleError: (error: Error) => void = raise,
  ): Promise<{ urls: DatabaseUrls; db: ConnectedDatabase; owner: Database }> {
    this.#migrated ??= this.#migrate();
    const urls = await this.#create(await this.#migrated);
    return {
      urls,
      db: connectPostgres(urls.api, onIdleError),
      owner: connectPostgres(urls.owner, onIdleError),
    };
  }

  /** The URL of a PgBouncer in transaction mode before a database, while the work runs. */
  async pooled({ api }: Pick<DatabaseUrls, 'api'>, work: (url: string) => Promise<void>): Promise<void> {
    const port = await getPort({ host: '127.0.0.1' });
    const file = join(this.#dir, `pgbouncer-${port}.ini`);
    const lines = [
      '[databases]',
      `* = host=127.0.0.1 port=${this.#port} user=api`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = any',
      'pool_mode = transaction',
    ];
    await writeFile(file, `${lines.join('\n')}\n`);
    const identity = userInfo().uid === 0 ? await identityOf('postgres') : null;
    const pooler = spawn('pgbouncer', ['-q', file], {
      ...identity,
      stdio: 'ignore',
      env: { ...process.env, PATH: PATH_WITH_SBIN },
    });
    const exited = once(pooler, 'exit');
    const url = new URL(api);
    url.port = String(port);
    try {
      await eventually(() => answers(url.href));
      await work(url.href);
    } finally {
      pooler.kill('SIGTERM');
      await exited;
    }
  }

  /** Stops the server, runs the work meanwhile, and starts the server again on the same data. */
  async without(work: () => Promise<void>): Promise<void> {
    await this.#halt();
    try {
      await work();
    } finally {
      this.#server = this.#launch();
      await this.#answers();
    }
  }

  /** Kills the server with SIGKILL, and starts it again on the same data. */
  async kill(): Promise<void> {
    const exited = once(this.#server, 'exit');
    this.#server.kill('SIGKILL');
    await exited;
    // A new server refuses to start until the sessions of the killed one have ended.
    await eventually(async () => {
      const server = this.#launch();
      const ended = once(server, 'exit').then(() => Promise.reject(new Error('the server has ended')));
      this.#server = server;
      await Promise.race([this.#answers(), ended]);
    });
  }

  async stop(): Promise<void> {
    await this.#left();
    await this.#halt();
    await rm(this.#dir, { recursive: true, force: true });
  }

  /** Waits until the connections of ended pools are closed: one that breaks when the server stops is an error. */
  async #left(): Promise<void> {
    const others = `from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`;
    await eventually(() =>
      this.#query(`do $$ begin if exists (select ${others}) then raise 'still connected'; end if; end $$`),
    );
  }

  async #halt(): Promise<void> {
    const exited = once(this.#server, 'exit');
    // Fast shutdown: the server closes open connections instead of waiting for them.
    this.#server.kill('SIGINT');
    await exited;
  }

  async #answers(): Promise<void> {
    await eventually(() => this.#query('select 1'));
  }

  #url(database: string, role = 'tagyard'): string {
    return `postgres://${role}@127.0.0.1:${this.#port}/${database}`;
  }

  async #query(text: string): Promise<void> {
    const client = new pg.Client({ connectionString: this.#url('postgres') });
    await client.connect();
    try {
      await client.query(text);
    } finally {
      await client.end();
    }
  }
}

async function answers(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => undefined);
  await client.connect();
  await client.end();
}

/** An idle connection that breaks is a fault of the suite. */
function raise(error: Error): never {
  throw error;
}

async function identityOf(user: string): Promise<{ uid: number; gid: number }> {
  const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, user])));
  return { uid: Number(uid?.stdout), gid: Number(gid?.stdout) };
}
