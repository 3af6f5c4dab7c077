import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { execa } from 'execa';
import { PATH_WITH_SBIN } from '../components.ts';
import { eventually } from '../eventually.ts';

const TIMEOUT = { timeoutMs: 60_000 };

/**
 * A Docker engine of a suite's own, which can be stopped and can lose its images without effect on others. It uses a
 * bridge of the machine's engine and needs root. It does not touch the host's packet filter: docker-proxy publishes its
 * ports. As in Linux distributions, containerd is a service of its own and outlives the engine.
 */
export async function startOwnEngine(machine: Docker, name: string, { hasBridge = true } = {}) {
  await using stack = new AsyncDisposableStack();
  // The path of a socket is limited to 107 characters.
  const home = await mkdtemp(join(tmpdir(), 'tgye-'));
  stack.defer(() => rm(home, { recursive: true, force: true, maxRetries: 10 }));
  stack.defer(() => unmountUnder(home));
  const bridge = `tgy${process.pid}`;
  const options = { 'com.docker.network.bridge.name': bridge };
  const network = await machine.createNetwork({ Name: `tagyard-${name}-${process.pid}`, Options: options });
  stack.defer(() => network.remove());

  const containerd = join(home, 'containerd.sock');
  const config = `version = 2
root = ${JSON.stringify(join(home, 'containerd'))}
state = ${JSON.stringify(join(home, 'containerd-run'))}
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = ${JSON.stringify(containerd)}
`;
  await writeFile(join(home, 'containerd.toml'), config);
  const runtime = run('containerd', ['--config', join(home, 'containerd.toml'), '--log-level', 'error']);
  runtime.stderr?.resume();
  stack.defer(() => end(runtime));

  const socketPath = join(home, 'docker.sock');
  const docker = new Docker({ socketPath });
  let engine: ChildProcess | null = null;
  /** Does nothing while the engine runs. */
  async function start(): Promise<void> {
    if (engine !== null && engine.exitCode === null && engine.signalCode === null) return;
    // Without a bridge, an engine removes the default bridge of its network: that of the machine's own engine.
    const [command, ...before] = hasBridge
      ? (['dockerd'] as const)
      : (['unshare', '--net', 'dockerd'] as const);
    const started = run(command, [
      ...before,
      ...[
        '--host',
        `unix://${socketPath}`,
        '--containerd',
        containerd,
        '--bridge',
        hasBridge ? bridge : 'none',
      ],
      ...['--data-root', join(home, 'data'), '--exec-root', join(home, 'run')],
      ...['--pidfile', join(home, 'docker.pid'), '--shutdown-timeout', '3', '--log-level', 'warn'],
      ...['--iptables=false', '--ip-forward=false', '--ip-masq=false'],
    ]);
    engine = started;
    let output = '';
    started.stderr?.setEncoding('utf8').on('data', (more: string) => {
      output = (output + more).slice(-2_000);
    });
    const hasEnded = () => started.exitCode !== null;
    const answers = async () => {
      if (hasEnded()) throw new Error(`dockerd ended instead of coming up: ${output}`);
      await docker.ping();
    };
    await eventually(answers, { ...TIMEOUT, until: hasEnded });
  }
  async function stop(): Promise<void> {
    if (engine !== null) await end(engine);
    engine = null;
  }

  stack.defer(async () => {
    // A test may have stopped the engine; its containers still run.
    await start();
    const all = await docker.listContainers({ all: true });
    await Promise.all(all.map(({ Id }) => docker.getContainer(Id).remove({ force: true })));
    await stop();
  });
  await start();
  const owned = stack.move();
  return { docker, start, stop, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
export type OwnEngine = Awaited<ReturnType<typeof startOwnEngine>>;

function run(command: string, args: readonly string[]): ChildProcess {
  return spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: PATH_WITH_SBIN } });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill();
  await ended;
}

/** Containerd keeps the mounts of containers that it did not remove. */
async function unmountUnder(home: string): Promise<void> {
  const points = (await readFile('/proc/self/mounts', 'utf8'))
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  for (const point of points.toReversed()) {
    if (point.startsWith(`${home}/`)) await execa('umount', [point], { env: { PATH: PATH_WITH_SBIN } });
  }
}
