import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RetryableError } from '../../../base/errors.ts';
import { CommandError, runCommand } from '../../../clients/command.ts';
import { type DaemonSettings, NginxDaemon } from './daemon.ts';
import { NameConflict } from './name-conflict.ts';
import { masterByPid } from './process.ts';

interface SystemSettings extends DaemonSettings {
  /** `/etc/nginx/nginx.conf`, say. */
  readonly config: string;
}

/** All that it reads, printed: 1,000 sites are 10 MB. */
const MAX_DUMP = 500_000_000;
const TEST_TIMEOUT_MS = 180_000;

/**
 * The system's own nginx, which reads our tree by one line in its `http` block. We test it, reload it and watch it;
 * starting, stopping and every other line of its configuration are its operator's. A tree is tested by itself first
 * and together with the operator's after the swap; where those two don't agree, the tree of before is put back,
 * and a site that claims one of the operator's names is left out.
 */
export class SystemNginx extends NginxDaemon {
  readonly #settings: SystemSettings;
  #pidFile: string | null = null;

  constructor(settings: SystemSettings) {
    super(settings);
    this.#settings = settings;
  }

  /** The one line. */
  static includeLine(prefix: string): string {
    return `include ${join(prefix, 'current')}/*/*.conf;`;
  }

  /**
   * Only a name of a fresh file makes a conflict: two vhosts of the operator's own that share one are no matter of
   * ours, and one of the operator's that came after a site's keeps no other site back.
   */
  override async activate(version: string, fresh: readonly string[]): Promise<void> {
    const { dump, conflicts } = await this.#read();
    const { prefix, config } = this.#settings;
    if (!dump.includes(join(prefix, 'current', 'http', 'tagyard.conf'))) {
      const line = SystemNginx.includeLine(prefix);
      throw new RetryableError(
        `${config} doesn’t include the sites: add to its http block the line "${line}"`,
      );
    }
    const conflict = conflicts.find((one) => fresh.some((text) => one.isIn(text)));
    if (conflict !== undefined) throw conflict;
    await super.activate(version, fresh);
  }

  /** It stays, whoever of us goes. */
  override async stop(): Promise<void> {
    this.unwatch();
  }

  protected override async master(): Promise<number | null> {
    this.#pidFile ??= await this.#findPidFile();
    const pid = Number.parseInt(await readFile(this.#pidFile, 'utf8').catch(() => ''), 10);
    return await masterByPid(pid);
  }

  protected override async launch(): Promise<void> {
    throw new RetryableError('the system’s nginx isn’t running: start it (systemctl start nginx)');
  }

  /** The whole configuration as nginx reads it, and names in it that are claimed twice. Throws `RetryableError`. */
  async #read(): Promise<{ dump: string; conflicts: readonly NameConflict[] }> {
    const { bin, config } = this.#settings;
    const options = { timeoutMs: TEST_TIMEOUT_MS, maxOutput: MAX_DUMP };
    try {
      const { stdout, stderr } = await runCommand(bin, ['-T', '-e', 'stderr', '-c', config], options);
      return { dump: stdout, conflicts: NameConflict.all(stderr, ` between ${config} and the sites`) };
    } catch (cause) {
      if (!(cause instanceof CommandError)) throw cause;
      const said = /\[emerg\] (?:[0-9]+#[0-9]+: )?(.*)/.exec(cause.stderr)?.[1] ?? cause.message;
      throw new RetryableError(`nginx refuses ${config}: ${said}`, { cause });
    }
  }

  /** Told by its configuration, else built in. */
  async #findPidFile(): Promise<string> {
    const told = /(?:^|;)[ \t]*pid\s+"?([^;"]+)"?;/m.exec((await this.#read()).dump)?.[1];
    if (told?.startsWith('/')) return told;
    const { stderr } = await runCommand(this.#settings.bin, ['-V']);
    const builtIn = (name: string) => new RegExp(`--${name}=(\\S+)`).exec(stderr)?.[1];
    return told === undefined
      ? (builtIn('pid-path') ?? '/run/nginx.pid')
      : join(builtIn('prefix') ?? '/etc/nginx', told);
  }
}
