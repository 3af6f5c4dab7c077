import { once } from 'node:events';
import { join } from 'node:path';
import Docker from 'dockerode';
import { z } from 'zod';
import { insidePreviewName, networkName } from '../../../base/ownership.ts';
import { containersApplier } from '../../../gitops/appliers/containers/applier.ts';
import { dockerRuntime } from '../../../gitops/appliers/containers/docker-runtime.ts';
import { Recycling } from '../../../gitops/appliers/containers/recycling.ts';
import { trustedCas } from '../../../gitops/appliers/containers/trusted-cas.ts';
import type { Applier, Change } from '../../../gitops/appliers/contract.ts';
import { networkApplier } from '../../../gitops/appliers/network/applier.ts';
import { dockerNetworks } from '../../../gitops/appliers/network/docker-networks.ts';
import { firewall } from '../../../gitops/appliers/network/firewall.ts';
import { hostNameservers, hostRoutes } from '../../../gitops/appliers/network/host-network.ts';
import { parseRange } from '../../../gitops/appliers/network/ranges.ts';
import { firewallNames } from '../../../gitops/appliers/network/rules.ts';
import { proxyApplier } from '../../../gitops/appliers/proxy/applier.ts';
import { certificatesByMode } from '../../../gitops/appliers/proxy/certificates.ts';
import { embeddedBackend } from '../../../gitops/appliers/proxy/embedded/backend.ts';
import { dockerBridgeGateway } from '../../../gitops/clients/docker.ts';
import { dockerEvents } from '../../../gitops/clients/docker-events.ts';
import { checkPreviewPath } from '../../../gitops/host-report/preview-path.ts';
import { openInsideCas } from '../../../sites/local/inside-cas.ts';
import { ensureLocalCa } from '../../../sites/local/local-ca.ts';
import { Slots } from '../../../sites/manifest/slots.ts';
import { loadedManifest } from '../manifest.ts';

/**
 * A process with the appliers of networks and containers. It is separate because they must run in the network namespace
 * of their engine. It applies the sites that its parent names, then answers. With `cut` it stops for ever at one
 * effect, so that the parent can kill it there.
 */
const settings = z.object({
  socketPath: z.string(),
  image: z.string(),
  instance: z.string(),
  originPort: z.number(),
  range: z.string(),
  /** False: containers run without a network of their own, as in older releases. */
  ownNetwork: z.boolean(),
  /** A folder for a proxy on Docker's bridge, at the origin port. Unset: no proxy, and no name inside the networks. */
  proxyHome: z.string().optional(),
  cut: z.object({ index: z.number(), moment: z.enum(['before', 'after']) }).optional(),
});
export type IsolatedHostSettings = z.infer<typeof settings>;

const request = z.object({
  id: z.number(),
  what: z.enum(['apply', 'plan', 'event', 'networks', 'preview']),
  sites: z.array(z.string()),
});
export type IsolatedHostRequest = z.infer<typeof request>;

process.once('disconnect', () => process.exit(0));
const { socketPath, image, originPort, range, proxyHome, cut, ...options } = settings.parse(
  (await once(process, 'message'))[0],
);
const identity = { instance: options.instance, host: 'tag-1' };
const docker = new Docker({ socketPath });
const { signal } = new AbortController();
const networkOf = (site: string) => networkName(identity.instance, site);

let effects = 0;
async function effect<T>(name: string, work: () => Promise<T>): Promise<T> {
  effects += 1;
  const index = effects;
  const stop = async (moment: 'before' | 'after') => {
    if (cut?.index !== index || cut.moment !== moment) return;
    process.send?.({ cut: `${moment} ${name}` });
    await new Promise(() => undefined);
  };
  await stop('before');
  const result = await work();
  await stop('after');
  return result;
}

const own = [parseRange(range)].filter((one) => one !== null);
const names = firewallNames(identity);
const proxy = proxyHome === undefined ? null : await startProxy(proxyHome);
const real = {
  networks: dockerNetworks(docker),
  firewall: firewall({
    names,
    own,
    exceptions: async () => {
      const address = await dockerBridgeGateway(docker);
      const preview = address === null ? null : { address, port: originPort };
      return { preview, nameservers: await hostNameservers(), ranges: [] };
    },
  }),
  runtime: dockerRuntime({
    docker,
    stopGraceSeconds: 1,
    ...(options.ownNetwork ? { networkOf } : {}),
    ...proxy?.ca,
  }),
};
const containerSettings = {
  slots: new Slots('127.88'),
  ownNetwork: options.ownNetwork,
  originPort,
  ...(proxy === null ? {} : { previewNameOf: (site: string) => insidePreviewName(identity, site) }),
};
const recycling = new Recycling({ days: 0, now: Date.now });
const network = networkApplier({
  identity,
  names,
  ranges: own,
  networks: {
    ...real.networks,
    create: (...args) => effect('create a network', () => real.networks.create(...args)),
    remove: (...args) => effect('remove a network', () => real.networks.remove(...args)),
  },
  firewall: {
    ...real.firewall,
    ensure: () => effect('write the rules', () => real.firewall.ensure()),
    remove: () => effect('remove the rules', () => real.firewall.remove()),
  },
  reserved: hostRoutes,
  losses: (stop) => dockerEvents(docker, { type: ['network'], event: ['destroy'] }, stop),
  // Where a host is to be killed at its nth effect, the repeated check must not add effects.
  checkEveryMs: cut ? 3_600_000 : 200,
});
const containers = containersApplier(
  {
    identity,
    ...containerSettings,
    ...proxy?.ca,
    startupDeadlineMs: 60_000,
    steadyMs: 0,
    drain: { leastMs: 0, mostMs: 1_000 },
    previewIdleMs: 60_000,
    recycling,
  },
  {
    ...real.runtime,
    start: (launch, stop) => effect('start a container', () => real.runtime.start(launch, stop)),
    remove: (id, stop) => effect('remove a container', () => real.runtime.remove(id, stop)),
  },
);
await containers.readSlots(signal);
const editions = { ...containerSettings, edition: (site: string) => recycling.edition(site) };
const appliers: Applier[] = [
  ...(options.ownNetwork ? [network as never] : []), // an applier gets only its own changes
  containers as never,
  ...(proxy === null ? [] : [proxyApplier({ ...proxy, identity, containers: editions }) as never]),
];
const events = network.events?.(signal)[Symbol.asyncIterator]();
let event = events?.next();

const manifestOf = (site: string) => ({ ...loadedManifest(site, Number(site.replace(/\D/g, ''))), image });

async function plan(sites: readonly string[]): Promise<Change[]> {
  const plans = await Promise.all(
    appliers.map(async (applier) => {
      const desired = sites.flatMap((site) => applier.desired(manifestOf(site)));
      return applier.plan(desired, await applier.observe(desired, signal)).changes;
    }),
  );
  return plans.flat();
}

async function apply(sites: readonly string[], only: readonly Applier[] = appliers): Promise<void> {
  const changes = await plan(sites);
  const run = async (applier: Applier, isDelete: boolean) => {
    const own = changes.filter(
      ({ target, op }) => target === applier.target && (op === 'delete') === isDelete,
    );
    await Promise.all(own.map((change) => applier.apply(change, signal)));
  };
  for (const applier of only) await run(applier, false);
  for (const applier of only.toReversed()) await run(applier, true);
}

async function answer({ what, sites }: IsolatedHostRequest): Promise<unknown> {
  if (what === 'apply') return await apply(sites);
  if (what === 'networks') return await apply(sites, [network as never]);
  if (what === 'event') {
    await event;
    event = events?.next();
    return null;
  }
  if (what === 'preview') {
    const gateway = () => dockerBridgeGateway(docker);
    const deps = { containerSettings: editions, gateway };
    return await Promise.all(sites.map((site) => checkPreviewPath(manifestOf(site), deps, 5_000)));
  }
  return (await plan(sites)).map(({ target, op, key }) => `${target} ${op} ${key}`);
}

/** The embedded proxy where the containers expect it, with certificates as a host has them. */
async function startProxy(home: string) {
  const files = await ensureLocalCa(join(home, 'public'));
  const inside = await openInsideCas(join(home, 'inside'));
  const certificates = certificatesByMode({ files, inside });
  const address = (await dockerBridgeGateway(docker)) ?? '';
  const backend = embeddedBackend({
    prefix: join(home, 'proxy'),
    listen: [address],
    httpPort: 0,
    tlsPort: originPort,
    hopSecret: 'hop-secret-of-the-tests-0123456789',
    edgeUpstream: { scheme: 'http', address: '127.0.0.1', port: 9 },
    certificates,
    identity,
  });
  await backend.start();
  const ca = await trustedCas(undefined, inside);
  return { backend, certificates, ca, probeTimeoutMs: 10_000 };
}

process.on('message', (message) => {
  const asked = request.parse(message);
  answer(asked).then(
    (result) => process.send?.({ id: asked.id, result: result ?? null }),
    (error: unknown) => process.send?.({ id: asked.id, error: String(error) }),
  );
});
process.send?.({ ready: true });
