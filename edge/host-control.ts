import { randomBytes } from 'node:crypto';
import type { Miniflare } from 'miniflare';
import type {
  ControlCall,
  HostKvPutOptions,
  HostListOptions,
  HostObjectListOptions,
} from './front/control-call.ts';

/** A key in a listing; `expiration` in seconds since the epoch. */
interface HostKvKey {
  readonly name: string;
  readonly metadata?: unknown;
  readonly expiration?: number;
}

/** Workers KV, like its REST API. The worker sees a write immediately, unless its caches have an older value. */
export interface HostKv {
  get(key: string): Promise<string | null>;
  put(key: string, value: string, options?: HostKvPutOptions): Promise<void>;
  delete(key: string): Promise<void>;
  list(options?: HostListOptions): Promise<{ keys: HostKvKey[]; cursor?: string; complete: boolean }>;
}

/** The archive of the raw logs, as R2 lists it: ordered by the octets of the keys. */
export interface HostObjects {
  get(key: string): Promise<string | null>;
  put(key: string, text: string): Promise<void>;
  delete(key: string): Promise<void>;
  list(options: HostObjectListOptions): Promise<{ objects: HostObject[]; cursor?: string }>;
}

/** `size` in octets. */
interface HostObject {
  readonly key: string;
  readonly size: number;
  readonly etag: string;
  readonly uploaded: Date;
}

type Call = (call: ControlCall) => Promise<unknown>;

/** A new secret that only this process knows. */
export const newControlSecret = (): string => randomBytes(32).toString('hex');

/** Calls `front/control.ts`, the runtime's first worker. */
export function controlOf(miniflare: Miniflare, secret: string): Call {
  return async (call) => {
    const response = await miniflare.dispatchFetch('http://control/', {
      method: 'POST',
      headers: { 'x-control-secret': secret },
      body: JSON.stringify(call),
    });
    const answer = (await response.json()) as { result?: unknown; error?: string }; // of front/control.ts
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer.result;
  };
}

export function hostKv(call: Call, namespace: string): HostKv {
  return {
    get: async (key) => (await call({ op: 'kvGet', namespace, key })) as string | null,
    async put(key, value, options = {}) {
      await call({ op: 'kvPut', namespace, key, value, options });
    },
    async delete(key) {
      await call({ op: 'kvDelete', namespace, key });
    },
    async list(options = {}) {
      const page = (await call({ op: 'kvList', namespace, options })) as KvPage;
      const { keys, list_complete: complete, cursor } = page;
      return { keys, complete, ...(complete || cursor === undefined ? {} : { cursor }) };
    },
  };
}

/** A page of KV's binding. */
interface KvPage {
  readonly keys: HostKvKey[];
  readonly list_complete: boolean;
  readonly cursor?: string;
}

export function hostObjects(call: Call): HostObjects {
  return {
    get: async (key) => (await call({ op: 'logGet', key })) as string | null,
    async put(key, value) {
      await call({ op: 'logPut', key, value });
    },
    async delete(key) {
      await call({ op: 'logDelete', key });
    },
    async list(options) {
      const page = (await call({ op: 'logList', options })) as LogPage;
      const objects = page.objects.map((one) => ({ ...one, uploaded: new Date(one.uploaded) }));
      return { objects, ...(page.cursor === null ? {} : { cursor: page.cursor }) };
    },
  };
}

interface LogPage {
  readonly objects: readonly (Omit<HostObject, 'uploaded'> & { readonly uploaded: string })[];
  readonly cursor: string | null;
}
