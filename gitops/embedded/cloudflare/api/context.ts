import type { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { ApiError } from './envelope.ts';
import type { KvStore } from '../kv/store.ts';
import type { CallLimit } from './call-limit.ts';
import type { ObjectStore } from '../objects.ts';
import { accountId, listNamespaces, type Namespace, type Zone, zoneRow } from './state.ts';

export interface EmulatorDeps {
  /** From `openState`; zones and namespaces are put there with `ensureZone` and `ensureNamespace`. */
  readonly db: DatabaseSync;
  readonly token: string;
  /** Names of the worker scripts that a route may name. */
  readonly scripts: readonly string[];
  readonly kv: (namespace: Namespace) => KvStore;
  /** R2 buckets by name. */
  readonly buckets?: Readonly<Record<string, ObjectStore>>;
  /** Told all patterns that lead to a script, whenever they change and before the change is answered. */
  readonly onRoutes: (patterns: readonly string[]) => Promise<void>;
  readonly now?: () => Date;
  readonly limit?: CallLimit;
}

/** What the endpoints share. `zone`, `account`, `store` and `bucket` find what a path names, or throw the API's own error. */
export interface EmulatorContext {
  readonly db: DatabaseSync;
  readonly scripts: readonly string[];
  readonly now: () => Date;
  zone(params: unknown): Zone;
  account(params: unknown): void;
  store(params: unknown): KvStore;
  bucket(params: unknown): ObjectStore;
  routesChanged(): Promise<void>;
}

const zoneParams = z.object({ zone_id: z.string() });
const accountParams = z.object({ account_id: z.string() });
const bucketParams = z.object({ bucket_name: z.string() });
const namespaceParams = z.object({ namespace_id: z.string() });
const patternRow = z.object({ pattern: z.string() });

/** All patterns that lead to a script; a route without one is a bypass. */
export function routePatterns(db: DatabaseSync): string[] {
  return db
    .prepare('SELECT pattern FROM routes WHERE script IS NOT NULL ORDER BY pattern')
    .all()
    .map((row) => patternRow.parse(row).pattern);
}

export function createContext(deps: EmulatorDeps, now: () => Date): EmulatorContext {
  const { db, scripts, onRoutes } = deps;
  const account = accountId(db);
  const context: EmulatorContext = {
    db,
    scripts,
    now,
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
    bucket(params) {
      context.account(params);
      const store = new Map(Object.entries(deps.buckets ?? {})).get(bucketParams.parse(params).bucket_name);
      if (store === undefined) throw new ApiError('unknownBucket', 'The specified bucket does not exist.');
      return store;
    },
    routesChanged: () => onRoutes(routePatterns(db)),
  };
  return context;
}

export function noRoute(what: string): ApiError {
  return new ApiError('noRoute', `Could not route to ${what}, perhaps your object identifier is invalid?`);
}
