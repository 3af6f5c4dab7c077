/** A call by the process that started the runtime, as JSON. */
export type ControlCall =
  | {
      readonly op: 'setRoutes';
      readonly patterns: readonly string[];
      readonly elsewhere: readonly string[];
    }
  | { readonly op: 'kvGet' | 'kvDelete'; readonly namespace: string; readonly key: string }
  | {
      readonly op: 'kvPut';
      readonly namespace: string;
      readonly key: string;
      readonly value: string;
      readonly options: HostKvPutOptions;
    }
  | { readonly op: 'kvList'; readonly namespace: string; readonly options: HostListOptions }
  | { readonly op: 'logGet' | 'logDelete'; readonly key: string }
  | { readonly op: 'logPut'; readonly key: string; readonly value: string }
  | { readonly op: 'logList'; readonly options: HostObjectListOptions };

export interface HostListOptions {
  readonly prefix?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

export interface HostObjectListOptions extends HostListOptions {
  /** Only keys after this one. */
  readonly startAfter?: string;
}

/**
 * `expiration` in seconds since the epoch, `expirationTtl` in seconds. Both are at least 60 s ahead, as on Cloudflare.
 */
export interface HostKvPutOptions {
  readonly metadata?: unknown;
  readonly expiration?: number;
  readonly expirationTtl?: number;
}
