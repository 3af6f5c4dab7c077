import { RetryableError } from '../../../base/errors.ts';

/** Two servers claim one name: nginx only warns of it, and serves the first. */
export class NameConflict extends RetryableError {
  override name = 'NameConflict';
  readonly host: string;

  private constructor(host: string, where: string) {
    super(`conflicting server name "${host}"${where}`);
    this.host = host;
  }

  /** All that nginx warns of in what it wrote. */
  static all(stderr: string, where = ''): NameConflict[] {
    const hosts = [...stderr.matchAll(/conflicting server name "([^"]*)"/g)].map(([, host = '']) => host);
    return [...new Set(hosts)].map((host) => new NameConflict(host, where));
  }

  /** Whether a site's file claims the name. */
  isIn(text: string | null): boolean {
    return text?.includes(`server_name ${this.host};`) ?? false;
  }
}
