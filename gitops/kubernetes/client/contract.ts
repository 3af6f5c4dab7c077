import type { Kind, KubernetesObject, ObjectAddress } from './kinds.ts';

/** The metadata of what the API server has stored, and the texts of its `Warning:` headers. */
export interface Applied {
  readonly object: KubernetesObject;
  readonly warnings: readonly string[];
}

export interface ApplyOptions {
  /** The field manager. */
  readonly manager: string;
  /** Takes fields over from other managers. Only for objects with our mark. */
  readonly force: boolean;
  /** The API server validates the object and answers, but stores nothing. */
  readonly dryRun?: boolean;
}

export interface ObjectSelection {
  readonly kind: Kind;
  /** Default: all namespaces. */
  readonly namespace?: string | undefined;
  /** As in `tagyard/instance=a,tagyard/host=b`. */
  readonly labels?: string;
  /** As in `metadata.name=x`. */
  readonly fields?: string;
  /** Only metadata is sent (`PartialObjectMetadata`): for Secrets, whose content isn't wanted. */
  readonly metadataOnly?: boolean;
  /**
   * How long a watch pauses after it has read some events, in milliseconds: reading each event by itself takes about
   * twice the CPU time. While `reached` waits, the pause is at most 50. Default: no pause.
   */
  readonly gatherMs?: number;
}

/**
 * Calls of the API server. All throw `RetryableError` or `TerminalError` with what to do, depending on the `reason` and
 * causes of the answer's `Status`. Callers that need to distinguish errors use `faultReason` of `errors.ts`.
 */
export interface KubernetesClient {
  /** Server-side apply, with strict validation of fields. */
  apply(object: KubernetesObject, options: ApplyOptions, signal: AbortSignal): Promise<Applied>;
  /** A JSON patch (RFC 6902). `null`: the object doesn't exist. */
  patch(
    address: ObjectAddress & { readonly subresource?: string },
    patch: readonly object[],
    signal: AbortSignal,
  ): Promise<KubernetesObject | null>;
  /** Deletes the object with this uid, and then what it owns. It is no error if the name has another object or none. */
  delete(address: ObjectAddress, uid: string, signal: AbortSignal): Promise<void>;
  /** `null`: it doesn't exist. */
  get(address: ObjectAddress, signal: AbortSignal): Promise<KubernetesObject | null>;
  /** All objects, read in pages, and the version from which a watch continues. */
  list(
    selection: ObjectSelection,
    signal: AbortSignal,
  ): Promise<{ readonly items: readonly KubernetesObject[]; readonly resourceVersion: string }>;
  /** Keeps a copy of the selected objects, by watching them. */
  watched(selection: ObjectSelection): Watched;
  /** GET of a path such as `/version`, as JSON. */
  raw(path: string, signal: AbortSignal): Promise<unknown>;
  close(): Promise<void>;
}

export interface ObjectChange {
  readonly type: 'added' | 'changed' | 'deleted';
  /** The object as it is now; if it was deleted, as it was last. */
  readonly object: KubernetesObject;
}

/** A copy of selected objects that follows the API server. */
export interface Watched {
  /**
   * Resolves when the first listing is complete; rejects with `fault`, or the signal's reason, if `signal` aborts
   * before.
   */
  ready(signal: AbortSignal): Promise<void>;
  /** What is known now, by key (`objectKey`). */
  readonly objects: ReadonlyMap<string, KubernetesObject>;
  /** The last error while the copy can't follow the API server; `null`: it can. */
  readonly fault: Error | null;
  /**
   * An item for each object that was added, changed or deleted since this call; several changes of one object that
   * weren't read yet are one item. Ends when `signal` aborts or the copy is closed. Each call is for one reader.
   */
  changes(signal: AbortSignal): AsyncIterable<ObjectChange>;
  /**
   * Resolves once the copy has this version of the object, a newer one, or its deletion. A watch that hasn't brought it
   * after ten seconds is opened again.
   */
  reached(address: ObjectAddress, resourceVersion: string, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}
