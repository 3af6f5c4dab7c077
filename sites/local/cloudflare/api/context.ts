import type { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { ApiError } from './envelope.ts';
import { type ApiLimits, REAL_LIMITS } from './limits.ts';
import { type ScriptStore, scriptStore } from './script-store.ts';
import { accountId, listNamespaces, type Namespace, type Zone, zoneRow } from './state.ts';
import type { KvStore, ObjectStore } from './stores.ts';
import type { WorkerState } from './worker-state.ts';
import { writeRate } from './write-rate.ts';

export interface EmulatorDeps {
  /** The database that `openState` returns. `ensureZone` and `ensureNamespace` add zones and namespaces to it. */
  readonly db: DatabaseSync;
  readonly token: string;
  /** Worker scripts that exist from the start; others can be uploaded. */
  readonly scripts: readonly string[];
  /** What the API says of these scripts until they are uploaded. Default: they have no bindings, and keep no logs. */
  readonly worker?: WorkerState;
  readonly kv: (namespace: Namespace) => KvStore;
  /** R2 buckets by name. */
  readonly buckets?: Readonly<Record<string, ObjectStore>>;
  /** Called at each change of the routes, before it is answered, see `routePatterns`. */
  readonly onRoutes: (patterns: readonly string[], elsewhere: readonly string[]) => Promise<void>;
  /** The clock of the rate limits and of all dates. */
  readonly now?: () => Date;
  /** Default: the real ones. */
  readonly limits?: ApiLimits;
}

/** What all endpoints use. `zone`, `account`, `store` and `bucket` check a path's parameters, or throw the API's error. */
export interface EmulatorContext {
  readonly db: DatabaseSync;
  readonly scripts: ScriptStore;
  readonly now: () => Date;
  readonly limits: ApiLimits;
  zone(params: unknown): Zone;
  account(params: unknown): void;
  store(params: unknown): KvStore;
  /** Whether a key of that namespace may be written now; the answer `true` counts as a write. */
  kvWrites(params: unknown): (key: string) => boolean;
  bucket(params: unknown): ObjectStore;
  routesChanged(): Promise<void>;
}

const zoneParams = z.object({ zone_id: z.string() });
const accountParams = z.object({ account_id: z.string() });
const bucketParams = z.object({ bucket_name: z.string() });
const namespaceParams = z.object({ namespace_id: z.string() });
const patternRow = z.object({ pattern: z.string(), script: z.string().nullable(), domain: z.number() });

/**
 * The patterns of routes: those that lead to one of these scripts, and the others. A route without a script bypasses the
 * workers. A custom domain of one of these scripts counts as a route for all paths of its hostname. One of another script
 * takes only what no route matches (docs/facts.md, Cloudflare Workers), so it takes nothing from a route.
 */
export function routePatterns(
  db: DatabaseSync,
  scripts: readonly string[],
): readonly [patterns: string[], elsewhere: string[]] {
  const all = db
    .prepare(
      `SELECT pattern, script, 0 AS domain FROM routes
       UNION SELECT hostname || '/*', service, 1 FROM domains ORDER BY pattern`,
    )
    .all()
    .map((row) => patternRow.parse(row));
  const isServed = ({ script }: z.infer<typeof patternRow>) => script !== null && scripts.includes(script);
  const served = all.filter(isServed);
  const others = all.filter((row) => !isServed(row) && row.domain === 0);
  return [served.map(({ pattern }) => pattern), others.map(({ pattern }) => pattern)];
}

export function createContext(deps: EmulatorDeps, now: () => Date): EmulatorContext {
  const { db, onRoutes } = deps;
  const account = accountId(db);
  const limits = deps.limits ?? REAL_LIMITS;
  const mayWrite = writeRate(limits.kvWriteMs, now);
  const scripts = scriptStore(db, now);
  for (const name of deps.scripts) scripts.embed(name, deps.worker ?? { bindings: [], settings: {} });
  const context: EmulatorContext = {
    db,
    scripts,
    now,
    limits,
    zone(params) {
      const { zone_id: id } = zoneParams.parse(params);
      if (!/^[0-9a-f]{32}$/.test(id)) throw noRoute(id);
      const row = db.prepare('SELECT * FROM zones WHERE id = ?').get(id);
      if (row === undefined) throw new ApiError('forbidden', 'Unauthorized to access requested resource');
      return zoneRow.parse(row);
    },
    account(params) {
      if (accountParams.parse(params).account_id !== account) {
        throw new ApiError('forbidden', 'Unauthorized to access requested resource');
      }
    },
    store(params) {
      context.account(params);
      const { namespace_id: id } = namespaceParams.parse(params);
      const namespace = listNamespaces(db).find((row) => row.id === id);
      if (namespace === undefined) throw new ApiError('unknownNamespace', 'namespace not found');
      return deps.kv(namespace);
    },
    kvWrites(params) {
      const { namespace_id: id } = namespaceParams.parse(params);
      return (key) => mayWrite(`${id} ${key}`);
    },
    bucket(params) {
      context.account(params);
      const store = new Map(Object.entries(deps.buckets ?? {})).get(bucketParams.parse(params).bucket_name);
      if (store === undefined) throw new ApiError('unknownBucket', 'The specified bucket does not exist.');
      return store;
    },
    routesChanged: () => onRoutes(...routePatterns(db, deps.scripts)),
  };
  return context;
}

export function noRoute(what: string): ApiError {
  return new ApiError('noRoute', `Could not route to ${what}, perhaps your object identifier is invalid?`);
}
