import { RetryableError } from '../../contract.ts';

/** Two servers claim one name: nginx only warns of it, and serves the first. */
export class NameConflict extends RetryableError {
  override name = 'NameConflict';
  readonly host: string;

  private constructor(host: string, where: string) {
    super(`conflicting server name "${host}"${where}`);
    this.host = host;
  }

  /** The first that nginx warns of in what it wrote, `null` where there is none. */
  static find(stderr: string, where = ''): NameConflict | null {
    const host = /conflicting server name "([^"]*)"/.exec(stderr)?.[1];
    return host === undefined ? null : new NameConflict(host, where);
  }

  /** Whether a site's file claims the name. */
  isIn(text: string | null): boolean {
    return text?.includes(`server_name ${this.host};`) ?? false;
  }
}
