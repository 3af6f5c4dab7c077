import { randomBytes } from 'node:crypto';
import Docker from 'dockerode';
import { dockerRuntime } from '../../../gitops/appliers/containers/docker-runtime.ts';
import { callDocker, dockerBridgeGateway, unlessGone } from '../../../gitops/clients/docker.ts';
import { NotTried } from '../not-tried.ts';

/** The label of every container that this command starts; its value identifies the run. */
const LABEL = 'tagyard.conform';
const PORT = '8080/tcp';
const CALL_MS = 60_000;
/** Enough for a few hundred megabytes over a slow line. */
const PULL_MS = 10 * 60_000;
const LINE_LENGTH = 1_000;
const MEMORY = 512 * 2 ** 20;

type Env = Readonly<Record<string, string>>;

export interface Container {
  /** The server's address on this machine's loopback. */
  readonly url: string;
  /** Its last lines. */
  readonly log: () => Promise<string>;
  /** `null` while it runs. */
  readonly exitCode: () => Promise<number | null>;
  readonly remove: () => Promise<void>;
}

/** What a container needs to run as Tagyard's processing servers do. It is then in the network of the run. */
export interface Placement {
  /** Names in the container's hosts file, each with its address. */
  readonly hosts: Readonly<Record<string, string>>;
  /** PEM file of a CA, and where the container has it. */
  readonly ca: { readonly file: string; readonly path: string };
}

/** Runs containers of one image and removes all of them at the end. */
export interface DockerRun {
  /** The image with its digest. */
  readonly subject: string;
  readonly start: (env: Env, placement?: Placement) => Promise<Container>;
  /** This machine's address that containers reach; `null` if the engine runs on another machine. */
  readonly gateway: () => Promise<string | null>;
  /** The last lines of the containers that were not removed. */
  readonly logs: () => Promise<string>;
  /** Returns how many containers were started, and what could not be removed. */
  readonly removeAll: () => Promise<{ started: number; remains: string[] }>;
}

/** Gets an image ready. Throws `NotTried` where there is no Docker, or no such image. */
export async function openDockerRun(reference: string, signal: AbortSignal): Promise<DockerRun> {
  const docker = new Docker();
  const runtime = dockerRuntime({ docker });
  await callDocker('asking for its version', docker.version()).catch((cause: unknown) => {
    throw new NotTried(`${messageOf(cause)}: install and start Docker`, { cause });
  });
  await getImage(docker, reference, signal);
  const { Id, RepoDigests = [], Created } = await docker.getImage(reference).inspect();
  const run = randomBytes(4).toString('hex');
  /** Starts under way: an interrupted run must remove what they make. */
  const starting = new Set<Promise<unknown>>();
  const kept = new Map<string, Container>();
  let started = 0;
  let isEnding = false;
  let network: Promise<string> | null = null;

  /** The name of the run's network, which is made where a container needs it. */
  function networkName(): Promise<string> {
    const name = `tagyard-conform-${run}`;
    network ??= callDocker(
      'creating a network',
      docker.createNetwork({ Name: name, Labels: { [LABEL]: run } }),
    ).then(() => name);
    return network;
  }

  async function remove(id: string): Promise<void> {
    await unlessGone(
      callDocker('removing a container', docker.getContainer(id).remove({ force: true, v: true })),
    );
    kept.delete(id);
  }

  async function create(env: Env, placement?: Placement): Promise<Container> {
    started += 1;
    const name = `tagyard-conform-${run}-${started}`;
    const placed = placement === undefined ? {} : placementOptions(placement, await networkName());
    const options = createOptions({ name, image: Id, run, env, placed });
    const created = await callDocker('creating a container', docker.createContainer(options));
    await callDocker('starting a container', created.start());
    const inspect = () => callDocker('inspecting a container', created.inspect());
    const { NetworkSettings } = await inspect();
    const container: Container = {
      url: `http://127.0.0.1:${NetworkSettings.Ports[PORT]?.[0]?.HostPort ?? 0}`,
      async log() {
        const lines = await runtime.lastLines(created.id, AbortSignal.timeout(CALL_MS));
        // Node prints the line that threw, which is the whole program if that is minified.
        const shown = lines.map((line) => line.slice(0, LINE_LENGTH));
        return shown.join('\n').replaceAll(env.CONTAINER_CONFIG || '\0', '[CONTAINER_CONFIG]');
      },
      async exitCode() {
        const { State } = await inspect();
        return State.Running ? null : State.ExitCode;
      },
      remove: () => remove(created.id),
    };
    kept.set(created.id, container);
    return container;
  }

  return {
    subject: [...new Set([reference, RepoDigests[0] ?? Id]), `built ${Created.slice(0, 10)}`].join(', '),
    gateway: () => dockerBridgeGateway(docker),
    async start(env, placement) {
      if (isEnding) throw new NotTried('the run has ended');
      const work = create(env, placement);
      const settled = work.catch(() => undefined);
      starting.add(settled);
      settled.finally(() => starting.delete(settled));
      return await work;
    },
    async logs() {
      const logs = await Promise.all([...kept.values()].map(({ log }) => log()));
      return logs.map((log) => `log of a container:\n${log}`).join('\n');
    },
    async removeAll() {
      isEnding = true;
      await Promise.all(starting);
      const filters = { label: [`${LABEL}=${run}`] };
      const listed = await callDocker('listing containers', docker.listContainers({ all: true, filters }));
      const problems = await Promise.all(
        listed.map(({ Id: id }) =>
          remove(id).then(
            () => [],
            (error: unknown) => [`container ${id.slice(0, 12)} (${messageOf(error)}): docker rm -f`],
          ),
        ),
      );
      const networks = await callDocker('listing networks', docker.listNetworks({ filters }));
      for (const { Id: id, Name } of networks) {
        await unlessGone(callDocker('removing a network', docker.getNetwork(id).remove())).catch(
          (error: unknown) => problems.push([`network ${Name} (${messageOf(error)}): docker network rm`]),
        );
      }
      return { started, remains: problems.flat() };
    },
  };
}

function placementOptions({ hosts, ca }: Placement, network: string): Docker.HostConfig {
  return {
    NetworkMode: network,
    ExtraHosts: Object.entries(hosts).map(([name, address]) => `${name}:${address}`),
    // With this, Docker's resolver itself answers that a name of one label has no address.
    DnsOptions: ['ndots:1'],
    Mounts: [{ Type: 'bind', Source: ca.file, Target: ca.path, ReadOnly: true }],
  };
}

interface Creation {
  readonly name: string;
  readonly image: string;
  readonly run: string;
  readonly env: Env;
  readonly placed: Docker.HostConfig;
}

/** As Tagyard runs the image: read-only, as distroless's `nonroot`, without capabilities. */
function createOptions({ name, image, run, env, placed }: Creation): Docker.ContainerCreateOptions {
  return {
    name,
    Image: image,
    User: '65532:65532',
    Env: Object.entries({ PORT: '8080', ...env }).map(([key, value]) => `${key}=${value}`),
    Labels: { [LABEL]: run },
    ExposedPorts: { [PORT]: {} },
    HostConfig: {
      PortBindings: { [PORT]: [{ HostIp: '127.0.0.1', HostPort: '0' }] },
      ReadonlyRootfs: true,
      Tmpfs: { '/tmp': 'rw,noexec,nosuid,nodev,size=16m' },
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Memory: MEMORY,
      MemorySwap: MEMORY,
      ...placed,
    },
  };
}

/** An id, a digest and an image that was built here can't change. Any other name is pulled, because tags move. */
async function getImage(docker: Docker, reference: string, signal: AbortSignal): Promise<void> {
  const found = await unlessGone(callDocker('inspecting the image', docker.getImage(reference).inspect()));
  const isFixed = /^sha256:|@sha256:/.test(reference) || found?.RepoDigests?.length === 0;
  if (found !== null && isFixed) return;
  if (reference.startsWith('sha256:')) throw new NotTried(`this machine has no image ${reference}`);
  const copy = found === null ? '' : `; to try this machine's copy, name it by its id: ${found.Id}`;
  await pull(docker, reference, signal).catch((cause: unknown) => {
    throw new NotTried(`${reference} can't be pulled: ${rootMessageOf(cause)}${copy}`, { cause });
  });
}

async function pull(docker: Docker, reference: string, signal: AbortSignal): Promise<void> {
  const abortSignal = AbortSignal.any([signal, AbortSignal.timeout(PULL_MS)]);
  const progress = await callDocker('pulling it', docker.pull(reference, { abortSignal }));
  // After the first byte, the engine reports errors in the progress stream, and dockerode rejects with them.
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve()));
  await promise;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** dockerode's own message has what the registry answered. */
function rootMessageOf(error: unknown): string {
  return error instanceof Error && error.cause !== undefined ? rootMessageOf(error.cause) : messageOf(error);
}
