import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { EventEmitter, on } from 'node:events';
import type { KeyFiles } from '../key-files.ts';
import { boundEndpoint, type ContainerInstance, type Launch, type Runtime, slotOf } from '../runtime.ts';
import { OutputQueue } from './output-queue.ts';
import { describeEnd, type Supervised, supervise } from './supervisor.ts';

interface ProcessRuntimeOptions {
  /** The script that every child runs instead of its spec's image: the stand-in tag server's main file. */
  readonly entry: string;
  /** PEM file of the CAs that a child trusts besides Node's own. Unset, or `undefined`: none. */
  readonly caFileOf?: (spec: Launch['spec']) => Promise<string | undefined>;
  /** Keys of service accounts. Unset: no child has one. */
  readonly keyFiles?: KeyFiles;
  /** Seconds between SIGTERM and SIGKILL; default 5. */
  readonly stopGraceSeconds?: number;
}

interface Entry {
  readonly id: string;
  readonly launch: Launch;
  readonly caFile: string | undefined;
  readonly output: OutputQueue;
  child: Supervised;
  stopped: boolean;
}

/**
 * Runs child processes instead of containers: with the same address, port, environment and restart policy, but without
 * isolation. They end with the daemon, because each one exits when its IPC channel closes.
 */
export function processRuntime(options: ProcessRuntimeOptions): Runtime {
  const { stopGraceSeconds = 5, keyFiles, caFileOf } = options;
  const entries = new Map<string, Entry>();
  const losses = new EventEmitter();

  function run({ launch, caFile, output }: Pick<Entry, 'launch' | 'caFile' | 'output'>): Supervised {
    output.open();
    return supervise({
      spawn: () => spawn(launch, options, caFile),
      onLines: (stream, lines) => output.push(stream, lines),
      onEnd({ isStopped }) {
        if (!isStopped) losses.emit('loss', launch.name);
      },
    });
  }

  async function stop(id: string): Promise<void> {
    const entry = entries.get(id);
    if (entry === undefined) return;
    entry.stopped = true;
    await entry.child.stop(stopGraceSeconds * 1000);
    entry.output.end();
  }

  async function remove(id: string): Promise<void> {
    await stop(id);
    const name = entries.get(id)?.launch.name;
    entries.delete(id);
    const others = [...entries.values()].some((entry) => entry.launch.name === name);
    if (name !== undefined && !others) await keyFiles?.remove(name);
  }

  /** Children end with their daemon, so key files that an earlier run left are of no use. */
  let cleaned: Promise<void> | null = null;
  async function removeOldKeys(): Promise<void> {
    for (const name of (await keyFiles?.names()) ?? []) await keyFiles?.remove(name);
  }

  return {
    async list() {
      return [...entries.values()].map(
        ({ id, launch: { name, mark, spec }, child, stopped }): ContainerInstance => {
          const running = !stopped && child.lastEnd() === null;
          const endpoint = running ? boundEndpoint(spec) : null;
          const placement = { slot: slotOf(spec), inPlace: true, isReaddressed: false };
          return { id, name, mark, running, stopped, endpoint, ...placement };
        },
      );
    },

    async start(launch) {
      const id = randomUUID();
      cleaned ??= removeOldKeys().catch((error: unknown) => {
        cleaned = null;
        throw error;
      });
      await cleaned;
      const { serviceAccountKey } = launch.spec;
      if (serviceAccountKey !== undefined) await keyFiles?.write(launch.name, serviceAccountKey);
      const caFile = await caFileOf?.(launch.spec);
      const made = { id, launch, caFile, output: new OutputQueue() };
      entries.set(id, { ...made, child: run(made), stopped: false });
      return id;
    },

    stop,

    async resume(id) {
      const entry = entries.get(id);
      if (entry === undefined || !entry.stopped) return;
      entry.child = run(entry);
      entry.stopped = false;
    },

    async death(id) {
      const entry = entries.get(id);
      if (entry === undefined) return 'it was removed';
      const end = entry.child.lastEnd();
      return end === null ? null : describeEnd(end);
    },

    lastLines: async (id) => entries.get(id)?.child.lastLines() ?? [],

    async output(id, _positions, write, signal) {
      const output = entries.get(id)?.output;
      if (output === undefined) return 'gone';
      await output.follow(write, signal);
      return 'ended';
    },
    remove,

    async *losses(signal) {
      try {
        for await (const [name] of on(losses, 'loss', { signal })) yield String(name);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },

    async close() {
      await Promise.all([...entries.keys()].map(remove));
    },
  };
}

/** The stand-in has little to do; by default, V8 would take a third more memory for it. */
const SMALL_V8 = ['--max-semi-space-size=1', '--optimize-for-size', '--single-threaded'];

/** A child gets a container's environment. Of the daemon's environment it gets only the folder of compiled code. */
function spawn(
  { name, spec }: Launch,
  { entry, keyFiles }: ProcessRuntimeOptions,
  caFile: string | undefined,
) {
  const keyFile = spec.serviceAccountKey && keyFiles?.pathOf(name);
  const { NODE_COMPILE_CACHE: compiled } = process.env;
  return fork(entry, [], {
    env: {
      ...(compiled === undefined ? {} : { NODE_COMPILE_CACHE: compiled }),
      ...spec.env,
      HOST: spec.boundAddress,
      PORT: String(spec.port),
      CONTAINER_CONFIG: spec.config.reveal(),
      ...(caFile === undefined ? {} : { NODE_EXTRA_CA_CERTS: caFile }),
      ...(keyFile === undefined ? {} : { GOOGLE_APPLICATION_CREDENTIALS: keyFile }),
    },
    // `ps` shows the title instead of the same script for every child.
    execArgv: [`--title=${name}`, ...SMALL_V8, `--max-old-space-size=${megabytes(spec.memory)}`],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
}

/** The manifest's schema allows only the units `m` and `g`, as in `512m`. */
function megabytes(memory: string): number {
  return Number.parseInt(memory, 10) * (memory.endsWith('g') ? 1024 : 1);
}
