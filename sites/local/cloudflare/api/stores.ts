interface KvPutOptions {
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Seconds from now. */
  readonly expirationTtl?: number;
  /** Seconds since the epoch. */
  readonly expiration?: number;
}

export interface KvListedKey {
  readonly name: string;
  readonly metadata?: unknown;
  readonly expiration?: number;
}

export interface KvListOptions {
  readonly prefix?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

export interface KvList {
  readonly keys: readonly KvListedKey[];
  /** Where the next page begins; absent on the last page. */
  readonly cursor?: string;
  readonly complete: boolean;
}

/** One KV namespace with text values. The embedded edge implements it with the store that its worker reads. */
export interface KvStore {
  get(key: string): Promise<string | null>;
  put(key: string, value: string, options?: KvPutOptions): Promise<void>;
  delete(key: string): Promise<void>;
  /** Keys in byte order; `limit` is at most 1000, the default. */
  list(options?: KvListOptions): Promise<KvList>;
}

/** One R2 bucket with texts. The embedded edge implements it with what its worker wrote. */
export interface ObjectStore {
  get(key: string): Promise<string | null>;
  put(key: string, text: string): Promise<void>;
  delete(key: string): Promise<void>;
  /** Keys in byte order, those after `startAfter`; the last page has no `cursor`. */
  list(options: { prefix?: string; limit?: number; cursor?: string; startAfter?: string }): Promise<{
    readonly objects: readonly { key: string; size: number; etag: string; uploaded: Date }[];
    readonly cursor?: string;
  }>;
}
