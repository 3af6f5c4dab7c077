import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import {
  boundEndpoint,
  type ContainerInstance,
  type Launch,
  type Runtime,
  slotOf,
} from '../../../gitops/appliers/containers/runtime.ts';

/**
 * What a started container does: each health check gets the next of `statuses`; the last one repeats. With a `death`,
 * or with an empty list, nothing listens.
 */
export interface FakeBehaviour {
  readonly statuses?: readonly (number | (() => Promise<number>))[];
  readonly death?: string;
  readonly lines?: readonly string[];
  /** Default: true. */
  readonly inPlace?: boolean;
  /** Default: false. */
  readonly isReaddressed?: boolean;
}

interface Running {
  instance: ContainerInstance;
  readonly launch: Launch;
  readonly behaviour: FakeBehaviour;
  server: Server | null;
}

/** Containers as HTTP servers of this process, with a log of the calls that change them. */
export class FakeRuntime implements Runtime {
  readonly calls: string[] = [];
  readonly #behave: (launch: Launch, start: number) => FakeBehaviour;
  readonly #all = new Map<string, Running>();
  #starts = 0;

  constructor(behave: (launch: Launch, start: number) => FakeBehaviour = () => ({})) {
    this.#behave = behave;
  }

  async list(): Promise<ContainerInstance[]> {
    return [...this.#all.values()].map(({ instance }) => instance);
  }

  async start(launch: Launch): Promise<string> {
    this.calls.push(`start ${launch.name}`);
    return await this.add(launch, this.#behave(launch, this.#starts));
  }

  /** Adds a running container. Tests add one as if an earlier daemon had started it. */
  async add(launch: Launch, behaviour: FakeBehaviour = {}): Promise<string> {
    this.#starts += 1;
    const id = String(this.#starts);
    const { name, mark, spec } = launch;
    const { inPlace = true, isReaddressed = false } = behaviour;
    const placement = { slot: slotOf(spec), inPlace, isReaddressed };
    const endpoint = boundEndpoint(spec);
    const instance = { id, name, mark, running: true, stopped: false, endpoint, ...placement };
    const running: Running = { instance, launch, behaviour, server: null };
    this.#all.set(id, running);
    await this.#serve(running);
    return id;
  }

  async output(): Promise<'ended'> {
    return 'ended';
  }

  async stop(id: string): Promise<void> {
    const found = this.#get(id);
    this.calls.push(`stop ${found.instance.name}`);
    await this.#close(found);
    found.instance = { ...found.instance, running: false, stopped: true, endpoint: null };
  }

  async resume(id: string): Promise<void> {
    const found = this.#get(id);
    this.calls.push(`resume ${found.instance.name}`);
    const endpoint = boundEndpoint(found.launch.spec);
    found.instance = { ...found.instance, running: true, stopped: false, endpoint };
    await this.#serve(found);
  }

  async death(id: string): Promise<string | null> {
    return this.#get(id).behaviour.death ?? null;
  }

  async lastLines(id: string): Promise<readonly string[]> {
    return this.#get(id).behaviour.lines ?? [];
  }

  async remove(id: string): Promise<void> {
    const found = this.#get(id);
    this.calls.push(`remove ${found.instance.name}`);
    await this.#close(found);
    this.#all.delete(id);
  }

  async *losses(): AsyncGenerator<string> {}

  async close(): Promise<void> {
    await Promise.all([...this.#all.values()].map((running) => this.#close(running)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #get(id: string): Running {
    const found = this.#all.get(id);
    if (found === undefined) throw new Error(`there is no container ${id}`);
    return found;
  }

  async #serve(running: Running): Promise<void> {
    const { statuses = [200], death } = running.behaviour;
    if (death !== undefined || statuses.length === 0) return;
    const left = [...statuses];
    const server = createServer(async (_, response) => {
      const next = (left.length > 1 ? left.shift() : left[0]) ?? 200;
      const status = typeof next === 'number' ? next : await next();
      response.writeHead(status).end('ok');
    });
    const { address, port } = boundEndpoint(running.launch.spec);
    server.listen(port, address);
    await once(server, 'listening');
    running.server = server;
  }

  async #close({ server }: Running): Promise<void> {
    if (server === null || !server.listening) return;
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }
}
