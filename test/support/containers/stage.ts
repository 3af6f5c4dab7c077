import { request } from 'undici';
import { afterEach, beforeEach } from 'vitest';
import { type ContainersSettings, containersApplier } from '../../../gitops/appliers/containers/applier.ts';
import { Recycling } from '../../../gitops/appliers/containers/recycling.ts';
import type { Runtime } from '../../../gitops/appliers/containers/runtime.ts';
import type { Change } from '../../../gitops/appliers/contract.ts';
import type { ContainerSpec, LoadedManifest } from '../../../sites/manifest/containers.ts';
import { Slots } from '../../../sites/manifest/slots.ts';
import { loadedManifest } from '../manifest.ts';

/** Settings with short times. Each suite has a `subnet` of its own. */
export function containersSettings(
  instance: string,
  subnet: string,
  overrides: Partial<ContainersSettings> = {},
): ContainersSettings {
  return {
    identity: { instance, host: 'tag-1' },
    slots: new Slots(subnet),
    originPort: 8443,
    // It ends a start that hangs. On a busy machine a container has taken 30 s.
    startupDeadlineMs: 120_000,
    steadyMs: 300,
    drain: { leastMs: 0, mostMs: 10_000 },
    previewIdleMs: 60_000,
    recycling: new Recycling({ days: 0, now: Date.now }),
    ...overrides,
  };
}

export interface RuntimeUnderTest {
  readonly runtime: Runtime;
  readonly image: string;
  /** Kills the server from outside, as an out-of-memory killer would. */
  kill(name: string): Promise<void>;
  /** Keeps it running without answers. */
  freeze(name: string): Promise<void>;
  /** What the server itself finds in GOOGLE_APPLICATION_CREDENTIALS and GOOGLE_CLOUD_PROJECT. */
  account(name: string): Promise<{ readonly file: string; readonly project: string }>;
  /** The names of the containers that have a key file on the host. */
  keys(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export const slotUrl = ({ address, port }: ContainerSpec) => `http://${address}:${port}`;

/** The status of a slot's `/healthz`; 0 without an answer. */
export async function healthOf(spec: ContainerSpec): Promise<number> {
  const ask = request(`${slotUrl(spec)}/healthz`, { reset: true, headersTimeout: 2_000 });
  return await ask.then(
    async ({ statusCode, body }) => {
      await body.dump();
      return statusCode;
    },
    () => 0,
  );
}

type ContainersApplier = ReturnType<typeof containersApplier>;

/** A new runtime for each test of a suite, and helpers that use appliers on it. */
export function containersStage(settings: ContainersSettings, setup: () => Promise<RuntimeUnderTest>) {
  const { signal } = new AbortController();
  let world: RuntimeUnderTest;
  beforeEach(async () => {
    world = await setup();
  });
  afterEach(async () => {
    await world.close();
  });

  const site = (extra: Partial<LoadedManifest> = {}) => ({
    ...loadedManifest('acme-shop'),
    image: world.image,
    ...extra,
  });
  const build = (change: Partial<ContainersSettings> = {}, runtime = world.runtime) =>
    containersApplier({ ...settings, ...change }, runtime);

  const planOf = async (applier: ContainersApplier, manifest: LoadedManifest) => {
    const desired = applier.desired(manifest);
    return applier.plan(desired, await applier.observe(desired, signal)).changes;
  };
  const applyAll = async (applier: ContainersApplier, changes: readonly Change<ContainerSpec>[]) => {
    const applied = changes.map((change) => applier.apply(change as never, signal)); // changes of its own plan
    // A change that is still being made would go on in the next test, which has containers of the same names.
    await Promise.allSettled(applied);
    await Promise.all(applied);
  };
  const up = async (applier: ContainersApplier, manifest: LoadedManifest) => {
    await applyAll(applier, await planOf(applier, manifest));
    return applier.desired(manifest).map(({ spec }) => spec);
  };
  const specAt = (specs: readonly ContainerSpec[], index: number): ContainerSpec => {
    const spec = specs[index];
    if (spec === undefined) throw new Error(`there is no container ${index}`);
    return spec;
  };
  /** The machine's engine runs containers of others, too. */
  const containers = async () =>
    (await world.runtime.list(new Set(), signal)).filter(({ name }) =>
      name.startsWith(`tagyard-${settings.identity.instance}-`),
    );
  const names = async () => (await containers()).map(({ name }) => name);

  return {
    signal,
    get world() {
      return world;
    },
    site,
    build,
    planOf,
    applyAll,
    up,
    specAt,
    containers,
    names,
  };
}

/** Index of a role in the specs of a site with one replica. */
export const [PROCESSING, PREVIEW] = [0, 1];

/** True for a change of a processing server, the role that ends if Google refuses its `auth`. */
export const isOfProcessing = ({ desired }: Change<ContainerSpec>): boolean =>
  desired?.spec.role === 'processing';
