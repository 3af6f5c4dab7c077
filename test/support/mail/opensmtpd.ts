import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import getPort from 'get-port';
import { PATH_WITH_SBIN } from '../components.ts';
import { eventually } from '../eventually.ts';

/** Debian's `daemon`, who owns what is delivered. */
const DAEMON = 1;

/** OpenSMTPD's spool and socket have fixed paths: in a mount namespace, each server has its own there. */
const PRIVATE = 'mount -t tmpfs tmpfs /var/spool && mount -t tmpfs tmpfs /run && exec smtpd -d -f "$0"';

/** An OpenSMTPD with a folder and a port of its own, which takes mails for anyone into one mailbox. Needs root. */
export async function startOpenSmtpd() {
  const dir = await mkdtemp(join(tmpdir(), 'tagyard-smtpd-'));
  const [port, mailbox, config] = [
    await getPort({ host: '127.0.0.1' }),
    join(dir, 'mail'),
    join(dir, 'smtpd.conf'),
  ];
  await chmod(dir, 0o755);
  await mkdir(mailbox);
  await chown(mailbox, DAEMON, DAEMON);
  const lines = [
    'table all { "@" = "daemon" }',
    `listen on 127.0.0.1 port ${port} hostname mail.test`,
    `action "keep" maildir "${mailbox}" virtual <all>`,
    'match from any for any action "keep"',
    '',
  ];
  await writeFile(config, lines.join('\n'), { mode: 0o600 });

  async function start() {
    const child = spawn('unshare', ['--mount', 'sh', '-c', PRIVATE, config], {
      env: { PATH: PATH_WITH_SBIN },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.on('data', (text: Buffer) => {
      said += text;
    });
    const answers = async () => {
      if (child.exitCode !== null) throw new Error(`smtpd ended: ${said}`);
      const socket = connect(port, '127.0.0.1');
      try {
        await once(socket, 'data');
      } finally {
        socket.destroy();
      }
    };
    await eventually(answers, { until: () => child.exitCode !== null });
    return child;
  }
  let server: Awaited<ReturnType<typeof start>> | null = await start();

  const smtpd = {
    url: `smtp://127.0.0.1:${port}`,
    /** The mails in the mailbox, one for each recipient, without the soft line breaks of quoted-printable. */
    async mails(): Promise<string[]> {
      const folder = join(mailbox, 'new');
      const names = await readdir(folder).catch(() => []);
      return await Promise.all(
        names.map(async (name) => (await readFile(join(folder, name), 'utf8')).replace(/=\r?\n/g, '')),
      );
    },
    async empty(): Promise<void> {
      await rm(join(mailbox, 'new'), { recursive: true, force: true });
      await mkdir(join(mailbox, 'new'));
      await chown(join(mailbox, 'new'), DAEMON, DAEMON);
    },
    async stop(): Promise<void> {
      const exited = server === null ? null : once(server, 'exit');
      server?.kill('SIGTERM');
      await exited;
      server = null;
    },
    async start(): Promise<void> {
      server = await start();
    },
    async close(): Promise<void> {
      await smtpd.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
  return smtpd;
}
export type OpenSmtpd = Awaited<ReturnType<typeof startOpenSmtpd>>;
