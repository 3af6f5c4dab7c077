import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Docker from 'dockerode';
import { execa } from 'execa';
import { z } from 'zod';
import { hostNameservers } from '../../../gitops/appliers/network/host-network.ts';
import { buildDemoImage } from '../../../sites/local/demo/image.ts';
import { PATH_WITH_SBIN } from '../components.ts';
import { eventually } from '../eventually.ts';
import type { IsolatedHostRequest, IsolatedHostSettings } from './isolated-host.ts';

export const INSTANCE = 'lab';
export const ORIGIN_PORT = 8443;
/** The port of the lab's listeners. The outer one also has 53; that of the preview servers only `ORIGIN_PORT`. */
export const PORT = 9000;
const RANGE = '10.213.0.0/16';

/** Addresses outside the host. All of them answer, so if a container can't reach one, it was blocked on the way. */
export const OUTSIDE = {
  public: '198.51.100.7',
  private10: '10.99.0.7',
  private172: '172.31.0.7',
  private192: '192.168.99.7',
  carrier: '100.64.0.7',
  linkLocal: '169.254.7.7',
  metadata: '169.254.169.254',
  metadataAlibaba: '100.100.100.200',
  metadataOracle: '192.0.0.192',
  metadataAzure: '168.63.129.16',
} as const;
export const HOST = { address: '203.0.113.1', docker: '172.17.0.1' } as const;
const WORLD = '203.0.113.2';
const WORLD_V6 = 'fd00:99::2';
const HOST_V6 = 'fd00:99::1';
export const ULA = { world: WORLD_V6, host: HOST_V6 } as const;

const ENV = { PATH: PATH_WITH_SBIN };
const outcomes = z.record(z.string(), z.boolean());
const reply = z.object({ id: z.number(), result: z.unknown().optional(), error: z.string().optional() });

/**
 * A simulated machine: a network namespace with a Docker engine that may write its firewall. A second namespace is the
 * outside world. Needs root. Doesn't change the real machine's network.
 */
export async function startNetworkLab() {
  await using stack = new AsyncDisposableStack();
  const home = await mkdtemp(join(tmpdir(), 'tgyn-'));
  stack.defer(() => rm(home, { recursive: true, force: true, maxRetries: 10 }));
  stack.defer(() => unmountUnder(home));
  const [machine, world] = [`tgym${process.pid}`, `tgyw${process.pid}`];
  for (const name of [machine, world]) {
    await run('ip', ['netns', 'add', name]);
    stack.defer(async () => {
      await run('ip', ['netns', 'del', name]);
    });
  }
  const inside = (name: string) => [`--net=/run/netns/${name}`];
  const within = (name: string, command: string, args: readonly string[]) =>
    run('nsenter', [...inside(name), command, ...args]);
  const ip = (name: string, text: string) => within(name, 'ip', text.split(' '));

  await ip(machine, `link add name uplink type veth peer name uplink netns ${world}`);
  for (const [name, own, ownV6] of [
    [machine, HOST.address, HOST_V6],
    [world, WORLD, WORLD_V6],
  ] as const) {
    await ip(name, 'link set lo up');
    await ip(name, `addr add ${own}/24 dev uplink`);
    await ip(name, `addr add ${ownV6}/64 dev uplink nodad`);
    await ip(name, `link set uplink up`);
  }
  await ip(machine, `route add default via ${WORLD}`);
  const nameservers = await hostNameservers();
  for (const address of new Set([...Object.values(OUTSIDE), ...nameservers])) {
    await ip(world, `addr add ${address}/32 dev lo`);
  }

  const children: ChildProcess[] = [];
  stack.defer(async () => {
    await Promise.all(children.map((child) => end(child, 'SIGKILL')));
  });
  const listen = async (name: string, address: string, ...ports: number[]) => {
    const script = `
      const ports = ${JSON.stringify(ports)};
      let left = ports.length;
      for (const port of ports) require('node:net').createServer((socket) => socket.on('error', () => socket.destroy()).end('here'))
        .listen(port, ${JSON.stringify(address)}, () => { left -= 1; if (left === 0) console.log('listening'); });`;
    const child = spawn('nsenter', [...inside(name), process.execPath, '--eval', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: ENV,
    });
    children.push(child);
    await once(child.stdout, 'data');
  };
  await Promise.all([listen(world, '::', PORT, 53), listen(machine, '::', PORT)]);

  const socketPath = join(home, 'docker.sock');
  const docker = new Docker({ socketPath });
  let engine: ChildProcess | null = null;
  async function start(): Promise<void> {
    const started = spawn(
      'nsenter',
      [
        ...inside(machine),
        'dockerd',
        ...['--host', `unix://${socketPath}`, '--pidfile', join(home, 'docker.pid'), '--log-level', 'error'],
        ...['--data-root', join(home, 'data'), '--exec-root', join(home, 'run'), '--shutdown-timeout', '3'],
      ],
      { stdio: ['ignore', 'ignore', 'pipe'], env: ENV },
    );
    engine = started;
    started.stderr?.resume();
    await eventually(() => docker.ping(), { timeoutMs: 60_000, until: () => started.exitCode !== null });
  }
  async function stop(): Promise<void> {
    if (engine !== null) await end(engine);
    engine = null;
  }
  stack.defer(async () => {
    if (engine === null) await start();
    const all = await docker.listContainers({ all: true });
    await Promise.all(all.map(({ Id }) => docker.getContainer(Id).remove({ force: true })));
    await stop();
  });
  await start();
  // Docker's bridge exists now. On it, a listener on the proxy's port plays the preview servers.
  await listen(machine, HOST.docker, ORIGIN_PORT);
  const image = await buildDemoImage({ docker, repository: 'tagyard-test/lab' });
  const { Config } = await docker.getImage(image).inspect();
  const [node = ''] = [Config.Entrypoint ?? []].flat();

  const script = fileURLToPath(new URL('isolated-host.ts', import.meta.url));
  async function startHost(extra: Partial<IsolatedHostSettings> = {}) {
    const child = fork(script, [], {
      execPath: 'nsenter',
      execArgv: [...inside(machine), process.execPath],
      env: ENV,
    });
    children.push(child);
    const settings: IsolatedHostSettings = {
      ...{ socketPath, image, instance: INSTANCE, originPort: ORIGIN_PORT, range: RANGE, ownNetwork: true },
      ...extra,
    };
    child.send(settings);
    await once(child, 'message');
    let last = 0;
    async function call(what: IsolatedHostRequest['what'], ...sites: string[]): Promise<unknown> {
      last += 1;
      const id = last;
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      const onMessage = (message: unknown) => {
        const read = reply.safeParse(message);
        if (!read.success || read.data.id !== id) return;
        child.off('message', onMessage);
        if (read.data.error === undefined) resolve(read.data.result);
        else reject(new Error(read.data.error));
      };
      child.on('message', onMessage);
      child.send({ id, what, sites } satisfies IsolatedHostRequest);
      return await promise;
    }
    // A SIGTERM can be lost while execa removes its handler for it.
    return { child, call, [Symbol.asyncDispose]: () => end(child, 'SIGKILL') };
  }

  let nameServer: ChildProcess | null = null;
  const lab = {
    docker,
    node,
    image,
    nameservers,
    startHost,
    async restartDocker() {
      await stop();
      await start();
    },
    /**
     * Starts a name server at each address that containers send queries to. It answers that every name has the given
     * `address`. `null`: ends the name servers.
     */
    async answerDns(address: string | null) {
      if (nameServer !== null) await end(nameServer, 'SIGKILL');
      nameServer = null;
      if (address === null) return;
      const script = `
        const { createSocket } = require('node:dgram');
        const answer = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...${JSON.stringify(address.split('.').map(Number))}];
        const servers = ${JSON.stringify(nameservers)};
        let left = servers.length;
        for (const server of servers) {
          const socket = createSocket('udp4');
          socket.on('message', (query, { port, address }) => {
            const end = query.indexOf(0, 12) + 5;
            const isA = query.readUInt16BE(end - 4) === 1;
            const head = Buffer.from([query[0], query[1], 0x81, 0x80, 0, 1, 0, isA ? 1 : 0, 0, 0, 0, 0]);
            socket.send(Buffer.concat([head, query.subarray(12, end), Buffer.from(isA ? answer : [])]), port, address);
          });
          socket.bind(53, server, () => { left -= 1; if (left === 0) console.log('listening'); });
        }`;
      const child = spawn('nsenter', [...inside(world), process.execPath, '--eval', script], {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: ENV,
      });
      nameServer = child;
      children.push(child);
      await once(child.stdout, 'data');
    },
    /** The addresses that DNS has for a name inside the container, without its hosts file; an error's code otherwise. */
    async resolve(container: string, name: string) {
      const inner = `const { Resolver } = require('node:dns');
        new Resolver({ timeout: 1_000, tries: 1 }).resolve4(${JSON.stringify(name)}, (error, found) =>
          console.log(JSON.stringify(error === null ? found : error.code)));`;
      const args = ['--host', `unix://${socketPath}`, 'exec', container, node, '--eval', inner];
      return JSON.parse((await execa('docker', args, { env: ENV })).stdout) as unknown;
    },
    home,
    /** Runs a command in the host's network. */
    exec: (command: string, ...args: string[]) => within(machine, command, args),
    /** The address of a site's container in its own network. */
    async addressOf(name: string) {
      const { NetworkSettings } = await docker.getContainer(name).inspect();
      const [network] = Object.values(NetworkSettings.Networks);
      return { address: network?.IPAddress ?? '', gateway: network?.Gateway ?? '' };
    },
    /** The name of the running container of a site in a role. */
    async nameOf(site: string, role = 'processing') {
      const all = await docker.listContainers();
      const names = all.flatMap(({ Names }) => Names).map((name) => name.slice(1));
      return names.find((name) => name.startsWith(`tagyard-${INSTANCE}-${site}-${role}-`)) ?? '';
    },
    /** Which of the addresses (`<address> <port>`) accept a connection from inside the container. */
    async reaches(container: string, targets: Readonly<Record<string, string>>) {
      const inner = `
        const targets = ${JSON.stringify(targets)};
        const reach = ([name, target]) => new Promise((resolve) => {
          const [host, port] = target.split(' ');
          const socket = require('node:net').connect({ host, port: Number(port), timeout: 1500 });
          const end = (reached) => { socket.destroy(); resolve([name, reached]); };
          socket.on('connect', () => end(true)).on('error', () => end(false)).on('timeout', () => end(false));
        });
        Promise.all(Object.entries(targets).map(reach))
          .then((all) => console.log(JSON.stringify(Object.fromEntries(all))));`;
      const host = `unix://${socketPath}`;
      const args = ['--host', host, 'exec', container, node, '--eval', inner];
      const { stdout } = await execa('docker', args, { env: ENV });
      return outcomes.parse(JSON.parse(stdout));
    },
  };
  const owned = stack.move();
  return { ...lab, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
export type NetworkLab = Awaited<ReturnType<typeof startNetworkLab>>;

async function run(command: string, args: readonly string[]): Promise<string> {
  return (await execa(command, args, { env: ENV })).stdout;
}

async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}

/** Containerd keeps the mounts of containers that it did not remove. */
async function unmountUnder(home: string): Promise<void> {
  const points = (await readFile('/proc/self/mounts', 'utf8'))
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  for (const point of points.toReversed()) {
    if (point.startsWith(`${home}/`)) await run('umount', [point]);
  }
}
