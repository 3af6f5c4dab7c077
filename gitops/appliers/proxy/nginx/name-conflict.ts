import { RetryableError } from '../../../../base/errors.ts';

/** The operator's configuration keeps nginx from serving a name. */
interface NameFault extends Error {
  /** True if a site's file has the name. */
  isIn(text: string | null): boolean;
}

/** Two servers claim one name: nginx only warns, and serves the first one. */
export class NameConflict extends RetryableError implements NameFault {
  override name = 'NameConflict';
  readonly host: string;

  private constructor(host: string, where: string) {
    super(`conflicting server name "${host}"${where}`);
    this.host = host;
  }

  /** All conflicts that nginx reports on stderr. */
  static all(stderr: string, where = ''): NameConflict[] {
    const hosts = [...stderr.matchAll(/conflicting server name "([^"]*)"/g)].map(([, host = '']) => host);
    return [...new Set(hosts)].map((host) => new NameConflict(host, where));
  }

  /** True if a site's file claims the name. */
  isIn(text: string | null): boolean {
    return text?.includes(`server_name ${this.host};`) ?? false;
  }
}

/**
 * A name is too long for `server_names_hash_bucket_size` in the operator's configuration. nginx then refuses the whole
 * configuration. Tagyard's own configuration allows every name.
 */
export class NameTooLong extends RetryableError implements NameFault {
  override name = 'NameTooLong';
  readonly #longest: number;

  private constructor(bucketBytes: number, config: string) {
    // A bucket ends with a pointer. Each name takes a pointer, two bytes for its length and padding to eight bytes.
    const longest = bucketBytes - 2 * 8 - 2;
    super(
      `${config} allows names of at most ${longest} characters: set server_names_hash_bucket_size 512 in its http block`,
    );
    this.#longest = longest;
  }

  /** `null` if nginx reports something else on stderr. */
  static of(stderr: string, config: string): NameTooLong | null {
    const bytes = /server_names_hash, you should increase server_names_hash_bucket_size: (\d+)/.exec(
      stderr,
    )?.[1];
    return bytes === undefined ? null : new NameTooLong(Number(bytes), config);
  }

  isIn(text: string | null): boolean {
    return [...(text ?? '').matchAll(/^ *server_name ([^;]+);$/gm)].some(
      ([, host = '']) => host.length > this.#longest,
    );
  }
}
