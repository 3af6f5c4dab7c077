import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { PATH_WITH_SBIN } from '../components.ts';
import { eventually } from '../eventually.ts';

/** Where a server finds the edge: all names of `hosts` at loopback, and only `caFile` as a trusted authority. */
interface Surroundings {
  readonly directory: string;
  readonly hosts: readonly string[];
  readonly caFile: string;
}

/** Mounts a hosts file and a bundle of authorities that only this process and its children see, and becomes the server. */
const ENTER = `mount --bind "$1" /etc/hosts && mount --bind "$2" /etc/ssl/certs/ca-certificates.crt && shift 2 && exec "$@"`;

/**
 * Starts a server in a mount namespace of its own and waits until it accepts connections on a port of 127.0.0.1. Rejects
 * with its output if it ends before.
 */
export async function startServer(
  argv: readonly string[],
  port: number,
  { directory, hosts, caFile }: Surroundings,
) {
  const hostsFile = join(directory, 'hosts');
  await writeFile(hostsFile, ['localhost', ...hosts].map((name) => `127.0.0.1 ${name}\n`).join(''));
  const child = spawn(
    'unshare',
    ['--mount', '--propagation', 'private', 'sh', '-c', ENTER, 'sh', hostsFile, caFile, ...argv],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: PATH_WITH_SBIN, HOME: directory, XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory },
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  await eventually(
    async () => {
      if (hasEnded()) throw new Error(`${argv[0]} ended: ${output.slice(-2_000)}`);
      const socket = connect({ host: '127.0.0.1', port });
      try {
        await once(socket, 'connect');
      } finally {
        socket.destroy();
      }
    },
    { until: hasEnded },
  );
  return {
    output: () => output,
    async stop(): Promise<void> {
      if (hasEnded()) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}
