import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { execa } from 'execa';
import { PATH_WITH_SBIN } from '../components.ts';
import { eventually } from '../eventually.ts';

const PATIENCE = { timeoutMs: 60_000 };

/**
 * A Docker engine of a suite's own beside the machine's, which only lends it a bridge: so that it can be stopped and
 * robbed of its images without harm to anybody. Needs root. It leaves the host's packet filter alone: what it
 * publishes goes by its own relay. As in a distribution, containerd is a service by itself and outlives it.
 */
export async function startOwnEngine(machine: Docker, name: string) {
  await using stack = new AsyncDisposableStack();
  // The path of a socket ends at 107 characters.
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
  async function start(): Promise<void> {
    const started = run('dockerd', [
      ...['--host', `unix://${socketPath}`, '--containerd', containerd, '--bridge', bridge],
      ...['--data-root', join(home, 'data'), '--exec-root', join(home, 'run')],
      ...['--pidfile', join(home, 'docker.pid'), '--shutdown-timeout', '3', '--log-level', 'warn'],
      ...['--iptables=false', '--ip-forward=false', '--ip-masq=false'],
    ]);
    engine = started;
    let said = '';
    started.stderr?.setEncoding('utf8').on('data', (more: string) => {
      said = (said + more).slice(-2_000);
    });
    const hasEnded = () => started.exitCode !== null;
    const answers = async () => {
      if (hasEnded()) throw new Error(`dockerd ended instead of coming up: ${said}`);
      await docker.ping();
    };
    await eventually(answers, { ...PATIENCE, until: hasEnded });
  }
  async function stop(): Promise<void> {
    if (engine !== null) await end(engine);
    engine = null;
  }

  stack.defer(async () => {
    // Containers outlive an engine that a test has left stopped.
    if (engine === null) await start();
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

/** Containerd leaves mounts of containers behind that it was not told to remove. */
async function unmountUnder(home: string): Promise<void> {
  const points = (await readFile('/proc/self/mounts', 'utf8'))
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  for (const point of points.toReversed()) {
    if (point.startsWith(`${home}/`)) await execa('umount', [point], { env: { PATH: PATH_WITH_SBIN } });
  }
}
