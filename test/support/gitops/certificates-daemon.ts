import { copyFile, mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import getPort from 'get-port';
import { expect } from 'vitest';
import type { Applier, Target } from '../../../gitops/appliers/contract.ts';
import { dnsApplier } from '../../../gitops/appliers/dns/applier.ts';
import { rfc2136Dns } from '../../../gitops/appliers/dns/rfc2136.ts';
import { proxyApplier } from '../../../gitops/appliers/proxy/applier.ts';
import type { ProxyBackend, ProxySettings } from '../../../gitops/appliers/proxy/backend.ts';
import { certificatesByMode } from '../../../gitops/appliers/proxy/certificates.ts';
import { combineCertificates } from '../../../gitops/certificates/contract.ts';
import { type AcmeOptions, openAcme } from '../../../gitops/certificates/open.ts';
import { OperatorFiles } from '../../../gitops/certificates/operator-files.ts';
import { dnsLookup } from '../../../gitops/clients/dns-lookup.ts';
import { rfc2136Client } from '../../../gitops/clients/rfc2136.ts';
import { DesiredStateReader } from '../../../gitops/desired/reader.ts';
import { uploadedPairs } from '../../../gitops/host/certificates.ts';
import { buildDaemon } from '../../../gitops/http/app.ts';
import { Loop } from '../../../gitops/loop/loop.ts';
import { Operations } from '../../../gitops/loop/operations.ts';
import type { DriftModes } from '../../../gitops/pass/drift.ts';
import { isCertificate } from '../../../gitops/report/is-certificate.ts';
import { type CertificateStatus, shownSiteSchema } from '../../../gitops/report/report.ts';
import { containerSpecs, type LoadedManifest } from '../../../sites/manifest/containers.ts';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { type ManifestInput, manifestSchema } from '../../../sites/manifest/schema.ts';
import { encryptSecret, Secret } from '../../../sites/manifest/secrets.ts';
import { Slots } from '../../../sites/manifest/slots.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo } from '../../../sites/repo/sites-repo.ts';
import { KNOT_ZONE, startKnot } from '../dns/knot.ts';
import { eventually } from '../eventually.ts';
import { manifestInput, ZONES } from '../manifest.ts';
import { type PebbleOptions, startPebble } from '../pebble.ts';
import { type Ask, ask, IDENTITY, proxyHome } from '../proxy/proxy.ts';
import { startUpstream } from '../upstream.ts';
import { memoryApplier } from './memory-applier.ts';

export const SECRET = 'an infra secret';
const HOST = '127.0.0.1';
/** Short pauses after a failed order. Those that a real authority's limits demand take hours. */
const QUICK = { firstMs: 300, longestMs: 600 };

export interface Options {
  readonly pebble?: Partial<PebbleOptions>;
  readonly acme?: Partial<AcmeOptions>;
  readonly drift?: DriftModes;
  readonly subnet: string;
}

/**
 * A provisioner in this process with everything real that certificates depend on: DNS (Knot), an authority (Pebble), the
 * loop and the proxy. Upstreams of the test replace the containers; KV and routes are maps.
 */
export async function certificatesDaemon(
  backendOf: (settings: ProxySettings) => ProxyBackend,
  { pebble: faults = {}, acme: extra = {}, drift = {}, subnet }: Options,
) {
  await using stack = new AsyncDisposableStack();
  const knot = stack.adopt(await startKnot(), (one) => one.close());
  const httpPort = await getPort({ host: '127.0.0.1' });
  const pebble = stack.adopt(await startPebble({ dnsPort: knot.port, httpPort, ...faults }), (one) =>
    one.close(),
  );
  const home = stack.adopt(await proxyHome(), (one) => one.remove());
  const edge = stack.adopt(await startUpstream({ name: 'edge' }), (one) => one.close());
  const sitesRepo = join(home.directory, 'sites.git');
  await initSitesRepo(sitesRepo);
  const repo = await openSitesRepo({ url: sitesRepo, cacheDir: home.directory });
  const ageIdentity = await generateIdentity();
  const config = 'aWQ9R1RNLVg=';
  const recipient = await identityToRecipient(ageIdentity);
  const cipher = await encryptSecret(recipient, config);
  const containers = { slots: new Slots(subnet), originPort: 443 };
  const warnings: string[] = [];
  const infos: string[] = [];
  const log = {
    info: (fields: object, message: string) => void infos.push(`${message} ${JSON.stringify(fields)}`),
    warn: (fields: object, message: string) => void warnings.push(`${message} ${JSON.stringify(fields)}`),
  };

  async function build() {
    await using inner = new AsyncDisposableStack();
    const acme = await openAcme(join(home.directory, 'acme'), {
      directoryUrl: pebble.directoryUrl,
      secret: ageIdentity,
      caFile: pebble.caFile,
      perHour: 600,
      addresses: [HOST],
      lookup: dnsLookup([`127.0.0.1:${knot.port}`], 2_000),
      endpoint: () => backend.endpoint(),
      pauses: { refused: QUICK, outage: QUICK },
      log,
      ...extra,
    });
    const files = await OperatorFiles.open({
      directory: join(home.directory, 'tls'),
      keptIn: join(home.directory, 'tls-served'),
      hasAuthority: true,
    });
    const uploaded = await uploadedPairs({ STATE_DIR: home.directory });
    const certificateSources = combineCertificates([acme.keeper, uploaded, files]);
    const certificates = certificatesByMode({ files, uploaded, acme: acme.keeper });
    const backend = backendOf({
      ...home.settings,
      httpPort,
      edgeUpstream: { scheme: 'http', address: edge.address, port: edge.port },
      certificates,
      challengeKey: acme.thumbprint,
    });
    inner.defer(() => backend.close());
    await backend.start();
    const identity = IDENTITY;
    const none = (target: Target): Applier =>
      memoryApplier({ target, identity, world: new Map(), desired: () => [] });
    const client = rfc2136Client({
      server: { host: '127.0.0.1', port: knot.port },
      zone: KNOT_ZONE,
      keyFile: knot.keyFile('tagyard'),
    });
    const provider = rfc2136Dns({ client, zone: KNOT_ZONE });
    const operations = new Operations([], () => undefined);
    const reader = new DesiredStateReader(repo, { host: IDENTITY.host, zones: ZONES, ageIdentity });
    const loop = new Loop({
      repo,
      reader,
      appliers: [
        none('containers'),
        proxyApplier({ backend, identity, containers, certificates }),
        none('kv'),
        none('route'),
        dnsApplier({
          provider,
          identity,
          zone: KNOT_ZONE,
          hostAddress: HOST,
          edgeTarget: 'edge.example.org',
        }),
      ],
      operations,
      host: IDENTITY.host,
      drainSeconds: 0,
      intervalSeconds: 600,
      certificates: certificateSources,
      drift,
      known: { revision: null, sites: [] },
      onChange: () => undefined,
      log,
    });
    const app = buildDaemon({
      repo,
      reader,
      loop,
      operations,
      host: IDENTITY.host,
      ageIdentity,
      secrets: [SECRET],
      certificatesOf: (site) => certificateSources.statuses(site),
      hasAuthority: true,
      // Its stores are maps, so the edge isn't asked.
      askEdge: async ({ hostnames: { edge: name } }) => ({ served: true, detail: name }),
    });
    inner.defer(() => app.close());
    inner.defer(() => loop.stop());
    inner.defer(() => certificateSources.stop());
    loop.start();
    certificateSources.start((site) => loop.checkSite(site));
    return { backend, app, loop, reader, stack: inner.move() };
  }
  let running = await build();
  stack.defer(() => running.stack.disposeAsync());

  async function call(method: 'GET' | 'POST' | 'DELETE', url: string, payload?: object) {
    const headers = { 'x-secret': SECRET };
    const answer = await running.app.inject({ method, url, headers, ...(payload && { payload }) });
    return { status: answer.statusCode, body: answer.json() };
  }

  /** Starts upstreams in place of a site's containers. */
  async function serveContainers(manifest: LoadedManifest): Promise<void> {
    for (const { address, port } of containerSpecs(manifest, containers)) {
      held.adopt(await startUpstream({ address, port }), (one) => one.close());
    }
  }

  const daemon = {
    knot,
    pebble,
    directory: home.directory,
    sitesRepo,
    recipient,
    /** The URL at which the provisioner listens from now on. */
    listen: () => running.app.listen({ host: '127.0.0.1', port: 0 }),
    warnings,
    /** All log lines. */
    logged: () => [...infos, ...warnings].join('\n'),
    call,
    /** Puts a new pair for `name` into the operator's folder. */
    async putFiles(stem: string, name: string): Promise<void> {
      await rm(join(home.directory, 'ca', `${name}.pem`), { force: true });
      const { cert, key } = await home.ca.pathsFor(name);
      await mkdir(join(home.directory, 'tls'), { recursive: true });
      await copyFile(cert, join(home.directory, 'tls', `${stem}.pem`));
      await copyFile(key, join(home.directory, 'tls', `${stem}.key`));
    },
    /** A pair for `name`, as a client has it. */
    async pairFor(name: string) {
      const { cert, key } = await home.ca.pathsFor(name);
      return { certificate: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') };
    },
    /** Makes `pairFor` issue another one. */
    forget: (name: string) => rm(join(home.directory, 'ca', `${name}.pem`), { force: true }),
    encrypt: (text: string) => encryptSecret(recipient, text),
    /** A manifest with `tls: acme`, whose site is served. */
    async site(name: string, number: number, extra: Partial<ManifestInput> = {}): Promise<ManifestInput> {
      const manifest = manifestInput(name, number, {
        tls: { mode: 'acme' },
        domains: [
          {
            domain: `www.${name}.${KNOT_ZONE}`,
            webTagId: 'GTM-ABC1234',
            token: `ct_certificates0${number}0x`,
          },
        ],
        containerConfig: cipher,
        ...extra,
      });
      await serveContainers({ ...manifestSchema.parse(manifest), config: new Secret(config) });
      return manifest;
    },
    /** Starts the upstreams of a site that is in git. */
    async serve(site: string): Promise<void> {
      const { sites } = await running.reader.peek((await repo.head()) ?? '');
      const manifest = sites.get(site)?.manifest;
      if (!manifest) throw new Error(`${site} has no valid manifest`);
      await serveContainers(manifest);
    },
    push: (site: string, manifest: ManifestInput | null) =>
      repo.commit({
        site,
        edit: () => (manifest === null ? null : formatManifest(manifest)),
        subject: 'By hand',
        author: { name: 'Op', email: 'op@example.test' },
        trailers: {},
      }),
    async status(site: string) {
      const { history: _, ...status } = (await call('GET', `/sites/${site}`)).body;
      return shownSiteSchema.parse(status);
    },
    async certificate(site: string, host: string): Promise<CertificateStatus | undefined> {
      const { resources } = await daemon.status(site);
      return resources.flatMap((one) => (isCertificate(one) && one.key === host ? [one] : []))[0];
    },
    reaches: (site: string, host: string, expected: object) =>
      eventually(async () => expect(await daemon.certificate(site, host)).toMatchObject(expected), {
        timeoutMs: 60_000,
      }),
    isReady: (site: string) =>
      eventually(async () => expect(await daemon.status(site)).toMatchObject({ ready: true }), {
        timeoutMs: 60_000,
      }),
    /** A request over TLS that trusts only the authority's root. */
    ask: async (asked: Ask) => await ask(running.backend.endpoint(), { ca: await pebble.root(), ...asked }),
    endpoint: () => running.backend.endpoint(),
    stored: (...path: string[]) => readFile(join(home.directory, 'acme', ...path), 'utf8'),
    /** `meanwhile`: what happens while it is stopped. */
    async restart(meanwhile: () => Promise<void> = async () => undefined) {
      await running.stack.disposeAsync();
      await meanwhile();
      running = await build();
    },
    close: () => held.disposeAsync(),
  };
  const held = stack.move();
  return daemon;
}
export type CertificatesDaemon = Awaited<ReturnType<typeof certificatesDaemon>>;
