import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { RAW_LOG_BUCKET } from '../../../edge/host.ts';
import { embeddedAccess } from '../../../gitops/cli/instance/embedded-access.ts';
import { OPERATOR } from '../../../gitops/cli/instance/issuer.ts';
import { openRawObjects } from '../../../management/raw-objects/open.ts';
import { duckDb } from '../../../management/requests/search/duckdb.ts';
import { eventually } from '../eventually.ts';
import type { Instance } from '../instance.ts';
import { runtimesOf } from '../runtimes.ts';
import { signal } from '../signal.ts';

/** A line of the raw logs. */
export interface RawRecord {
  readonly time: string;
  readonly requestId: string;
  readonly container: string | null;
  readonly status: number;
  readonly error: string | null;
  readonly events: Readonly<Record<string, number>>;
  readonly probe: boolean;
  readonly batch: string;
  readonly index: number;
}

interface Process {
  readonly pid: number;
  readonly script: string;
}

/** What tests of traffic do with a whole instance on one machine. */
export function trafficOf(home: string, { run }: Instance) {
  const read = (file: string) => JSON.parse(readFileSync(join(home, file), 'utf8'));
  const objects = openRawObjects({
    RAW_LOGS_BUCKET: RAW_LOG_BUCKET,
    RAW_LOGS_API_RATE: 1e6,
    RAW_LOGS_API_URL: run.cloudflare.url,
    RAW_LOGS_API_TOKEN: read('instance.json').cloudflareToken,
    RAW_LOGS_ACCOUNT_ID: run.cloudflare.accountId,
  });
  if (objects === null) throw new Error('the settings name no bucket');

  const part = (script: string): number => {
    const found = (read('children.json') as Process[]).find((one) => one.script.endsWith(script));
    if (found === undefined) throw new Error(`there is no process of ${script}`);
    return found.pid;
  };
  /** The runtime of the worker: workerd. */
  const runtime = (): number => {
    const [found, ...others] = runtimesOf(part('cloudflare/main.ts'));
    if (found === undefined || others.length > 0) throw new Error('the edge must have exactly one runtime');
    return found;
  };

  return {
    /** Text of all objects of the raw logs, by key. */
    async rawObjects(): Promise<Map<string, string>> {
      const found = new Map<string, string>();
      for await (const { key } of objects.list('raw/')) {
        found.set(key, String((await objects.read(key)) ?? ''));
      }
      return found;
    },
    /** What has reached the bucket: each record once, by its batch and index. */
    async records(): Promise<RawRecord[]> {
      const records = new Map<string, RawRecord>();
      for (const text of (await this.rawObjects()).values()) {
        for (const line of text.split('\n')) {
          if (line === '') continue;
          const record = JSON.parse(line) as RawRecord; // lines of the edge
          records.set(`${record.batch}.${record.index}`, record);
        }
      }
      return [...records.values()];
    },
    /** Kills a process and waits until another one is in its place. */
    async kill(which: 'management' | 'runtime'): Promise<void> {
      const pidOf = {
        management: () => part('management/main.ts'),
        runtime,
      }[which];
      const before = pidOf();
      signal(before, 'SIGKILL', home);
      await eventually(
        () => {
          if (pidOf() === before) throw new Error(`process ${before} is still the newest`);
        },
        { timeoutMs: 60_000 },
      );
    },
    /** All that Workers KV keeps, with the keys and their metadata. */
    async keptInKv(): Promise<string> {
      const { url, accountId } = run.cloudflare;
      const base = `${url}/accounts/${accountId}/storage/kv/namespaces`;
      const authorization = `Bearer ${read('instance.json').cloudflareToken}`;
      const get = async (path: string) =>
        await (await request(`${base}${path}`, { headers: { authorization } })).body.text();
      const texts: string[] = [];
      const { result } = JSON.parse(await get('?per_page=100')) as { result: { id: string }[] };
      for (const { id } of result) {
        const keys = await get(`/${id}/keys`);
        texts.push(keys);
        for (const { name } of (JSON.parse(keys) as { result: { name: string }[] }).result) {
          texts.push(await get(`/${id}/values/${encodeURIComponent(name)}`));
        }
      }
      return texts.join('\n');
    },
    /** All files of the instance, the logs of its processes among them, by path. */
    files(): Map<string, string> {
      const paths = readdirSync(home, { recursive: true, encoding: 'utf8' }).map((name) => join(home, name));
      const files = paths.filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? false);
      return new Map(files.map((path) => [path, readFileSync(path, 'latin1')]));
    },
    /** Rows of the cache of the search, as texts. */
    async searchCache(): Promise<string[]> {
      const dir = join(home, 'management', 'search');
      const duck = duckDb(dir, join(dir, 'temporary'));
      try {
        const rows = await duck.rows('SELECT file::VARCHAR AS row FROM read_parquet($files) AS file', {
          files: [join(dir, '*', '*', '*.parquet')],
        });
        return rows.map(({ row }) => String(row));
      } finally {
        duck.close();
      }
    },
    /** Asks management as an operator, who sees records of unknown hosts too. */
    async ask(path: string, headers: Record<string, string> = {}) {
      const { token } = await embeddedAccess({ home }, OPERATOR);
      const authorization = `Bearer ${await token()}`;
      return await request(`${run.management.url}${path}`, { headers: { authorization, ...headers } });
    },
  };
}
