/** An object as a listing shows it; `size` in octets. */
export interface RawObject {
  readonly key: string;
  readonly size: number;
}

/** The bucket of the raw logs. An `Error` of any call names the bucket, and the status where there is one. */
export interface RawObjects {
  /** Objects whose keys begin with `prefix`, ordered by the octets of their keys: all, or those after the key `after`. */
  list(prefix: string, after?: string): AsyncIterable<RawObject>;
  /** `null`: there is no such object. */
  read(key: string): Promise<Buffer | null>;
  /** Creates the object, or replaces it as a whole. */
  write(key: string, body: Buffer): Promise<void>;
  /** A missing object is no error. */
  remove(key: string): Promise<void>;
}
