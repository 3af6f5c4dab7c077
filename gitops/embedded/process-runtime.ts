import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { EventEmitter, on } from 'node:events';
import {
  boundEndpoint,
  type ContainerInstance,
  type Launch,
  type Runtime,
} from '../appliers/containers/runtime.ts';
import { type Supervised, supervise } from './supervisor.ts';

export interface ProcessRuntimeOptions {
  /** The server that every child runs, whatever its spec's image: the stand-in tag server's main file. */
  readonly entry: string;
  /** PEM file of a CA that children trust beside Node's own. */
  readonly caFile?: string;
  /** How long a child may take to end by itself when it is stopped; default 5. */
  readonly stopGraceSeconds?: number;
}

interface Entry {
  readonly id: string;
  readonly launch: Launch;
  child: Supervised;
  stopped: boolean;
}

/**
 * Child processes of this one in place of containers: the same address and port, environment and restart policy,
 * without isolation. They are gone with the daemon, by the IPC channel that each one watches.
 */
export function processRuntime(options: ProcessRuntimeOptions): Runtime {
  const { stopGraceSeconds = 5 } = options;
  const entries = new Map<string, Entry>();
  const news = new EventEmitter();

  function run(launch: Launch): Supervised {
    return supervise(
      () => spawn(launch, options),
      () => news.emit('loss', launch.name),
    );
  }

  async function stop(id: string): Promise<void> {
    const entry = entries.get(id);
    if (entry === undefined) return;
    entry.stopped = true;
    await entry.child.stop(stopGraceSeconds * 1000);
  }

  async function remove(id: string): Promise<void> {
    await stop(id);
    entries.delete(id);
  }

  return {
    async list() {
      return [...entries.values()].map(
        ({ id, launch: { name, mark, spec }, child, stopped }): ContainerInstance => {
          const running = !stopped && child.death() === null;
          return { id, name, mark, running, stopped, endpoint: running ? boundEndpoint(spec) : null };
        },
      );
    },

    async start(launch) {
      const id = randomUUID();
      entries.set(id, { id, launch, child: run(launch), stopped: false });
      return id;
    },

    stop,

    async resume(id) {
      const entry = entries.get(id);
      if (entry === undefined || !entry.stopped) return;
      entry.child = run(entry.launch);
      entry.stopped = false;
    },

    async death(id) {
      const entry = entries.get(id);
      return entry === undefined ? 'it was removed' : entry.child.death();
    },

    lastLines: async (id) => entries.get(id)?.child.lastLines() ?? [],
    remove,

    async *losses(signal) {
      try {
        for await (const [name] of on(news, 'loss', { signal })) yield String(name);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },

    async close() {
      await Promise.all([...entries.keys()].map(remove));
    },
  };
}

/** Nothing of our own environment reaches a child: it has what a container would have. */
function spawn({ name, spec }: Launch, { entry, caFile }: ProcessRuntimeOptions) {
  return fork(entry, [], {
    env: {
      ...spec.env,
      HOST: spec.boundAddress,
      PORT: String(spec.port),
      CONTAINER_CONFIG: spec.config.reveal(),
      ...(caFile === undefined ? {} : { NODE_EXTRA_CA_CERTS: caFile }),
    },
    // The title is what `ps` shows instead of one and the same script for all of them.
    execArgv: [`--title=${name}`, `--max-old-space-size=${megabytes(spec.memory)}`],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
}

/** `512m` or `1g`, as the manifest's schema lets through. */
function megabytes(memory: string): number {
  return Number.parseInt(memory, 10) * (memory.endsWith('g') ? 1024 : 1);
}
