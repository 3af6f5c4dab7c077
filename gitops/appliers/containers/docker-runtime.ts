import { availableParallelism } from 'node:os';
import type Docker from 'dockerode';
import { coalesce } from '../../../base/coalesce.ts';
import { RetryableError, TerminalError } from '../../../base/errors.ts';
import { limit } from '../../../base/limit.ts';
import { siteOfMark } from '../../../base/ownership.ts';
import { withSharedSignal } from '../../../base/shared-signal.ts';
import {
  callDocker,
  DockerConflict,
  DockerRefusal,
  dockerBridgeGateway,
  limited,
  MARK_LABEL,
  unlessGone,
} from '../../clients/docker.ts';
import { dockerEvents } from '../../clients/docker-events.ts';
import { RUNBOOKS } from '../../report/runbooks.ts';
import { ensureImage } from './docker-image.ts';
import {
  CONTAINER_PORT,
  createOptions,
  hostsPreviewAddress,
  labelledPreviewAddress,
  readSlot,
} from './docker-spec.ts';
import type { KeyFiles } from './key-files.ts';
import { followDocker } from './output/docker-output.ts';
import type { ContainerInstance, Launch, Runtime } from './runtime.ts';

interface DockerRuntimeOptions {
  readonly docker: Docker;
  /** Returns the PEM file of the CAs that a container trusts in addition to Node's own; mounted read-only. */
  readonly caFileOf?: (spec: Launch['spec']) => Promise<string>;
  /** Keys of service accounts. Unset: no container has one. */
  readonly keyFiles?: KeyFiles;
  /** Returns the name of a site's network, which must exist. Unset: containers use Docker's default bridge. */
  readonly networkOf?: (site: string) => string;
  /** Seconds between SIGTERM and SIGKILL; default 10. */
  readonly stopGraceSeconds?: number;
}

const SHOWN_LINES = 20;
/**
 * Events after which a marked container might not serve. `health_status` comes from the image's own health check.
 */
const LOSSES = {
  type: ['container'],
  label: [MARK_LABEL],
  event: ['die', 'oom', 'destroy', 'pause', 'rename', 'health_status: unhealthy'],
};
/**
 * The engine needs CPU during a whole start. On two cores, forty concurrent starts took 10 % more CPU than two at a
 * time, and the first container was up only when most of them were.
 */
const STARTS_AT_ONCE = availableParallelism();
const INSPECTIONS_AT_ONCE = 8;

/** Runs containers in a Docker engine on this host. They outlive this process. */
export function dockerRuntime(settings: DockerRuntimeOptions): Runtime {
  const { docker, caFileOf, keyFiles, networkOf, stopGraceSeconds = 10 } = settings;
  /** Names of containers that are being created. */
  const creating = new Set<string>();

  /**
   * Concurrent callers get the result of one listing. Otherwise, a hundred starting containers would cause a hundred
   * listings.
   */
  const listAll = coalesce<AbortSignal, readonly ContainerInstance[]>(
    async (signals) => {
      // Files are listed before containers, because the file of a container exists before the container does.
      const files = ((await keyFiles?.names()) ?? []).filter((name) => !creating.has(name));
      const all = await withSharedSignal(signals, (signal) =>
        callDocker('listing containers', docker.listContainers({ all: true, abortSignal: limited(signal) })),
      );
      const readdressed = await withSharedSignal(signals, (signal) => readdressedOf(all, signal));
      const value = all.map((one) => readInstance(one, readdressed, networkOf));
      const present = new Set(value.map(({ name }) => name));
      for (const name of files) if (!present.has(name) && !creating.has(name)) await keyFiles?.remove(name);
      return signals.map(() => ({ status: 'fulfilled', value }));
    },
    { windowMs: 0 },
  );

  /** By container id, the address in the hosts file, if no label of the container states it. It never changes. */
  const inspected = new Map<string, string>();

  /** The ids of those containers whose hosts file has an earlier address of Docker's default bridge. */
  async function readdressedOf(
    all: readonly Docker.ContainerInfo[],
    signal: AbortSignal,
  ): Promise<ReadonlySet<string>> {
    const bridge = networkOf === undefined ? null : await dockerBridgeGateway(docker, signal);
    // Without site networks or a bridge, the address that a container needs is unknown.
    if (bridge === null) return new Set();
    const ids = new Set(all.map(({ Id }) => Id));
    for (const id of inspected.keys()) if (!ids.has(id)) inspected.delete(id);
    const stale = await Promise.all(
      all.map(async ({ Id, Labels }) => {
        if (siteOfMark(Labels[MARK_LABEL]) === null) return [];
        const address = labelledPreviewAddress(Labels) ?? (await inspections(() => inspectHosts(Id, signal)));
        return address === '' || address === bridge ? [] : [Id];
      }),
    );
    return new Set(stale.flat());
  }

  async function inspectHosts(id: string, signal: AbortSignal): Promise<string> {
    const known = inspected.get(id);
    if (known !== undefined) return known;
    const found = docker.getContainer(id).inspect({ abortSignal: limited(signal) });
    const container = await unlessGone(callDocker('inspecting a container', found));
    const address = hostsPreviewAddress(container?.HostConfig.ExtraHosts ?? []);
    inspected.set(id, address);
    return address;
  }

  async function stop(id: string, signal: AbortSignal): Promise<void> {
    const options = { t: stopGraceSeconds, abortSignal: limited(signal) };
    await unlessGone(callDocker('stopping a container', docker.getContainer(id).stop(options)));
  }

  async function remove(id: string, signal: AbortSignal): Promise<void> {
    const name = await nameWithKey(id, signal);
    await stop(id, signal);
    const options = { force: true, v: true, abortSignal: limited(signal) };
    try {
      await unlessGone(callDocker('removing a container', docker.getContainer(id).remove(options)));
    } catch (error) {
      if (!(error instanceof DockerConflict)) throw error;
      // A person, or a daemon that was killed meanwhile, has begun to remove it.
      const removed = { condition: 'removed', abortSignal: limited(signal) } as const;
      await unlessGone(callDocker('waiting for a removal', docker.getContainer(id).wait(removed)));
    }
    if (name !== null && !creating.has(name)) await keyFiles?.remove(name);
  }

  /** The name of a container that may have a key file; `null`: it has none. */
  async function nameWithKey(id: string, signal: AbortSignal): Promise<string | null> {
    if (keyFiles === undefined || (await keyFiles.names()).length === 0) return null;
    const found = docker.getContainer(id).inspect({ abortSignal: limited(signal) });
    const container = await unlessGone(callDocker('inspecting a container', found));
    return container?.Name.replace(/^\//, '') ?? null;
  }

  const starts = limit(STARTS_AT_ONCE);
  const inspections = limit(INSPECTIONS_AT_ONCE);

  async function networkFor(site: string, signal: AbortSignal) {
    if (networkOf === undefined) return {};
    const previewAddress = await dockerBridgeGateway(docker, signal);
    if (previewAddress === null)
      throw new RetryableError(
        `Docker’s default bridge network is not up. ${RUNBOOKS.docker_bridge.fixes.none}`,
      );
    return { network: { name: networkOf(site), previewAddress } };
  }

  async function writeKey({ name, spec: { serviceAccountKey } }: Launch): Promise<{ keyFile?: string }> {
    if (serviceAccountKey === undefined) return {};
    if (keyFiles === undefined) throw new TerminalError('this runtime has no folder for key files');
    return { keyFile: await keyFiles.write(name, serviceAccountKey) };
  }

  async function start(launch: Launch, signal: AbortSignal): Promise<string> {
    creating.add(launch.name);
    try {
      return await starts(() => run(launch, signal));
    } finally {
      creating.delete(launch.name);
    }
  }

  /** Creates and starts a container. Removes it if the start fails, except after an abort. */
  async function run(launch: Launch, signal: AbortSignal): Promise<string> {
    const placement = {
      ...(caFileOf === undefined ? {} : { caFile: await caFileOf(launch.spec) }),
      ...(await writeKey(launch)),
      ...(await networkFor(launch.spec.site, signal)),
    };
    const options = { ...createOptions(launch, placement), abortSignal: limited(signal) };
    const container = await callDocker(`creating ${launch.name}`, docker.createContainer(options));
    try {
      await callDocker(`starting ${launch.name}`, container.start({ abortSignal: limited(signal) }));
    } catch (error) {
      if (!signal.aborted) await remove(container.id, signal);
      throw error;
    }
    return container.id;
  }

  return {
    async list(names, signal) {
      const all = await listAll(signal);
      return all.filter(({ name, mark }) => mark !== null || names.has(name));
    },

    /** The image is usually on the host, so it is pulled only after the engine has reported it missing. */
    async start(launch, signal) {
      try {
        return await start(launch, signal);
      } catch (error) {
        if (!(error instanceof DockerRefusal) || error.status !== 404) throw error;
        await ensureImage(docker, launch.spec.image, signal);
        return await start(launch, signal);
      }
    },

    stop,

    async resume(id, signal) {
      const started = docker.getContainer(id).start({ abortSignal: limited(signal) });
      await unlessGone(callDocker('starting a container again', started));
    },

    async death(id, signal) {
      const container = docker.getContainer(id);
      const found = await unlessGone(
        callDocker('inspecting a container', container.inspect({ abortSignal: limited(signal) })),
      );
      if (found === null) return 'it was removed';
      const { Status, ExitCode, OOMKilled } = found.State;
      if (!['restarting', 'exited', 'dead'].includes(Status)) return null;
      return OOMKilled ? `exit code ${ExitCode}, out of memory` : `exit code ${ExitCode}`;
    },

    async lastLines(id, signal) {
      const options = { stdout: true, stderr: true, follow: false, tail: SHOWN_LINES } as const;
      const frames = await unlessGone(
        callDocker(
          'reading a container’s log',
          docker.getContainer(id).logs({ ...options, abortSignal: limited(signal) }),
        ),
      );
      return frames === null ? [] : demultiplex(frames).split('\n').filter(Boolean);
    },

    output: (id, positions, write, signal) => followDocker(docker, { id, positions }, write, signal),
    remove,
    losses: (signal) => dockerEvents(docker, LOSSES, signal),
    async close() {},
  };
}

function readInstance(
  { Id, Names, Labels, State, Ports, NetworkSettings }: Docker.ContainerInfo,
  readdressed: ReadonlySet<string>,
  networkOf: DockerRuntimeOptions['networkOf'],
): ContainerInstance {
  const published = Ports.find(({ PrivatePort, PublicPort }) => PrivatePort === CONTAINER_PORT && PublicPort);
  return {
    id: Id,
    name: (Names[0] ?? '').replace(/^\//, ''),
    mark: Labels[MARK_LABEL] ?? null,
    running: State === 'running',
    // The engine's restart policy restarts a container unless it was stopped on request.
    stopped: State === 'exited',
    endpoint: published === undefined ? null : { address: published.IP, port: published.PublicPort },
    slot: readSlot(Labels),
    inPlace: isInPlace(Labels[MARK_LABEL], Object.keys(NetworkSettings.Networks), networkOf),
    isReaddressed: readdressed.has(Id),
  };
}

/**
 * True if a container is only in the network of the site that its mark names. Without a mark or `networkOf`, always
 * true.
 */
function isInPlace(
  mark: string | undefined,
  networks: readonly string[],
  networkOf: DockerRuntimeOptions['networkOf'],
): boolean {
  const site = siteOfMark(mark);
  if (networkOf === undefined || site === null) return true;
  return networks.length === 1 && networks[0] === networkOf(site);
}

/** Frames with a header of 8 bytes (stream, 0, 0, 0, length) and a payload (Docker Engine API, "Stream format"). */
function demultiplex(frames: Buffer): string {
  const payloads: Buffer[] = [];
  for (let at = 0; at + 8 <= frames.length; ) {
    const end = at + 8 + frames.readUInt32BE(at + 4);
    payloads.push(frames.subarray(at + 8, end));
    at = end;
  }
  return Buffer.concat(payloads).toString();
}
