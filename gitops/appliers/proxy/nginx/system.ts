import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RetryableError } from '../../../../base/errors.ts';
import { CommandError, runCommand } from '../../../clients/command.ts';
import { type DaemonSettings, NginxDaemon } from './daemon.ts';
import { NameConflict, NameTooLong } from './name-conflict.ts';
import { masterByPid, stopNginx } from './process.ts';

interface SystemSettings extends DaemonSettings {
  /** `/etc/nginx/nginx.conf`, for example. */
  readonly config: string;
}

/** The output of `nginx -T` is 10 MB for 1,000 sites. */
const MAX_DUMP = 500_000_000;
const TEST_TIMEOUT_MS = 180_000;

/**
 * The system's nginx, which includes our tree by one line in its `http` block. We test, reload and watch it; the
 * operator starts and stops it, and owns every other line of its configuration. A tree is tested alone first, and with
 * the operator's configuration after the swap. If the second test fails, the previous tree is restored, and a site that
 * claims one of the operator's names is dropped.
 */
export class SystemNginx extends NginxDaemon {
  readonly #settings: SystemSettings;
  #pidFile: string | null = null;

  constructor(settings: SystemSettings) {
    super(settings);
    this.#settings = settings;
  }

  /** The line that the operator adds. */
  static includeLine(prefix: string): string {
    return `include ${join(prefix, 'current')}/*/*.conf;`;
  }

  /**
   * Throws a conflict only for a name in a fresh file. A conflict between two vhosts of the operator doesn't concern
   * us, and an operator's vhost that conflicts with an older site must not block other sites.
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

  /** Stops Tagyard's own nginx if an earlier setting started one: it holds the sites' ports. */
  override async prepare(): Promise<void> {
    await super.prepare();
    await stopNginx(this.#settings.prefix);
  }

  protected override async master(): Promise<number | null> {
    this.#pidFile ??= await this.#findPidFile();
    const pid = Number.parseInt(await readFile(this.#pidFile, 'utf8').catch(() => ''), 10);
    return await masterByPid(pid);
  }

  protected override async launch(): Promise<void> {
    throw new RetryableError('the system’s nginx isn’t running: start it (systemctl start nginx)');
  }

  /** The whole configuration, and the conflicts that nginx reports. Throws `RetryableError`. */
  async #read(): Promise<{ dump: string; conflicts: readonly NameConflict[] }> {
    const { bin, config } = this.#settings;
    const options = { timeoutMs: TEST_TIMEOUT_MS, maxOutput: MAX_DUMP };
    try {
      const { stdout, stderr } = await runCommand(bin, ['-T', '-e', 'stderr', '-c', config], options);
      return { dump: stdout, conflicts: NameConflict.all(stderr, ` between ${config} and the sites`) };
    } catch (cause) {
      if (!(cause instanceof CommandError)) throw cause;
      const tooLong = NameTooLong.of(cause.stderr, config);
      if (tooLong !== null) throw tooLong;
      const said = /\[emerg\] (?:[0-9]+#[0-9]+: )?(.*)/.exec(cause.stderr)?.[1] ?? cause.message;
      throw new RetryableError(`nginx refuses ${config}: ${said}`, { cause });
    }
  }

  /**
   * Takes the path from nginx's configuration, else the built-in default. If nginx refuses the configuration, only the
   * main file is read. The fault may be in Tagyard's own tree, which can be replaced only after nginx is found.
   */
  async #findPidFile(): Promise<string> {
    const text = await this.#read().then(
      ({ dump }) => dump,
      () => readFile(this.#settings.config, 'utf8').catch(() => ''),
    );
    const configured = /(?:^|;)[ \t]*pid\s+"?([^;"]+)"?;/m.exec(text)?.[1];
    if (configured?.startsWith('/')) return configured;
    const { stderr } = await runCommand(this.#settings.bin, ['-V']);
    const builtIn = (name: string) => new RegExp(`--${name}=(\\S+)`).exec(stderr)?.[1];
    return configured === undefined
      ? (builtIn('pid-path') ?? '/run/nginx.pid')
      : join(builtIn('prefix') ?? '/etc/nginx', configured);
  }
}
