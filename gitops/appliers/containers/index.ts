import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type Docker from 'dockerode';
import type { Log } from '../../../base/log.ts';
import { type Identity, networkName } from '../../../base/ownership.ts';
import { siblingUrl } from '../../../base/runtime/sibling.ts';
import type { ContainerSettings, ContainerSpec } from '../../../sites/manifest/containers.ts';
import type { Slots } from '../../../sites/manifest/slots.ts';
import type { Registration } from '../registration.ts';
import { containersApplier } from './applier.ts';
import { CONTAINERS } from './desired.ts';
import { dockerRuntime } from './docker-runtime.ts';
import { READER } from './docker-spec.ts';
import { followedRuntime } from './followed-runtime.ts';
import { ImagePruning } from './image-pruning.ts';
import { KeyFiles } from './key-files.ts';
import type { OutputSink } from './output/output.ts';
import type { Recycling } from './recycling.ts';
import type { Runtime } from './runtime.ts';
import { containersSettings } from './settings.ts';
import { type InsideAuthorities, processCaOf, trustedCas } from './trusted-cas.ts';

/** The shortest wait before an old container is removed: nginx may still forward requests that it has accepted. */
const LEAST_DRAIN_MS = 1_000;
/** How long a new container may take until it is healthy: the real image fetches its code from Google first. */
const STARTUP_DEADLINE_MS = 60_000;
/** The engine lists a thousand containers in far less time. */
const SLOTS_TIMEOUT_MS = 5_000;
/** The program of each child process, if containers run as such: the stand-in tag server. */
const STAND_IN = fileURLToPath(siblingUrl('../../../sites/local/demo/tag-server/main', import.meta.url));

interface Services {
  readonly identity: Identity;
  readonly stateDir: string;
  /** `null`: the host runs no containers in Docker. */
  readonly docker: Docker | null;
  readonly now: () => number;
  readonly log: Log;
  readonly containers: ContainerSettings & { readonly slots: Slots };
  readonly recycling: Recycling;
  /** The CAs of the names in the sites' networks, and of policy scripts. */
  readonly inside: InsideAuthorities;
  /** Keeps what containers print; `null`: nothing is kept. */
  readonly output: OutputSink | null;
  readonly embedded: {
    containerRuntime(options: {
      readonly entry: string;
      readonly caFileOf: (spec: Pick<ContainerSpec, 'policyHost'>) => Promise<string | undefined>;
      readonly keyFiles: KeyFiles;
    }): Runtime;
  };
}

/** A site's containers, in Docker or as child processes. */
export const containers: Registration<typeof containersSettings, Services> = {
  ...CONTAINERS,
  settings: containersSettings,
  async create(settings, services) {
    const { instance } = services.identity;
    const docker = settings.CONTAINERS_DRIVER === 'docker' ? services.docker : null;
    const { inside } = services;
    const ca = await trustedCas(settings.CONTAINER_CA_FILE, docker === null ? null : inside);
    const pruning = {
      file: join(services.stateDir, 'images.json'),
      keepDays: settings.IMAGE_KEEP_DAYS,
      now: services.now,
      log: services.log,
    };
    const keyFiles = new KeyFiles(
      join(services.stateDir, 'service-accounts'),
      docker === null ? null : READER,
    );
    const networkOf = (site: string) => networkName(instance, site);
    const bare = docker
      ? dockerRuntime({ docker, keyFiles, networkOf, ...ca })
      : services.embedded.containerRuntime({
          entry: STAND_IN,
          keyFiles,
          caFileOf: processCaOf(settings.CONTAINER_CA_FILE, inside),
        });
    const { output: sink, identity, log } = services;
    const runtime = sink === null ? bare : followedRuntime(bare, { identity, sink, log });
    const applier = containersApplier(
      {
        ...services.containers,
        ...ca,
        ...(docker && pruning.keepDays > 0 ? { images: new ImagePruning({ ...pruning, docker }) } : {}),
        ...(sink === null ? {} : { output: sink }),
        identity,
        log,
        recycling: services.recycling,
        startupDeadlineMs: STARTUP_DEADLINE_MS,
        steadyMs: settings.SWAP_STEADY_SECONDS * 1000,
        drain: { leastMs: LEAST_DRAIN_MS, mostMs: settings.SWAP_DRAIN_SECONDS * 1000 },
        previewIdleMs: settings.PREVIEW_IDLE_SECONDS * 1000,
      },
      runtime,
    );
    // If the engine can't be reached yet, the first observation reads the slots.
    await applier.readSlots(AbortSignal.timeout(SLOTS_TIMEOUT_MS)).catch(() => undefined);
    return applier;
  },
};
