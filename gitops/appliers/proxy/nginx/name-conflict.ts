import { RetryableError } from '../../../base/errors.ts';

/** Two servers claim one name: nginx only warns, and serves the first one. */
export class NameConflict extends RetryableError {
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
