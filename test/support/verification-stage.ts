import { readFile } from 'node:fs/promises';
import http, { type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type EdgeHost, startEdgeHost } from '../../edge/host.ts';
import { VerificationClient } from '../../edge/verification/client.ts';
import type { HostReport, VerificationReport } from '../../edge/verification/contract.ts';
import { containersApplier } from '../../gitops/appliers/containers/applier.ts';
import { processRuntime } from '../../gitops/appliers/containers/process/runtime.ts';
import { proxyResources } from '../../gitops/appliers/proxy/desired.ts';
import { embeddedBackend } from '../../gitops/appliers/proxy/embedded/backend.ts';
import { dnsLookup } from '../../gitops/clients/dns-lookup.ts';
import { hostReporter } from '../../gitops/host-report/report.ts';
import { runningPreviews } from '../../gitops/host-report/running-previews.ts';
import { TAG_SERVER_ENTRY } from '../../sites/local/demo/tag-server/entry.ts';
import { buildVendor } from '../../sites/local/demo/vendor/app.ts';
import { startEgress } from '../../sites/local/egress.ts';
import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import { kvDocuments } from '../../sites/manifest/documents.ts';
import { EMULATOR_SCRIPT, startEmulator } from './cloudflare/emulator.ts';
import { containersSettings } from './containers/stage.ts';
import { loadedManifest } from './manifest.ts';
import { HOP_SECRET, IDENTITY, proxyHome, put } from './proxy/proxy.ts';

export const VERIFICATION_SECRET = 'a-secret-of-the-verification-worker';
const VENDOR = 'vendor.localhost';

/** A request between two parts of the stage. */
export interface Passing {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
}

/** What is done to such a request instead of only forwarding it. */
export interface Fault {
  /** Forwards the request to this URL instead. */
  readonly url?: URL;
  /** Request headers to remove. */
  readonly strip?: readonly string[];
  /** Request headers to set. */
  readonly set?: Readonly<Record<string, string>>;
  /** The request is never answered. */
  readonly hold?: true;
  /** Answers instead of the destination. */
  readonly answer?: { readonly status: number; readonly headers?: OutgoingHttpHeaders };
  /** Changes the answer’s headers. */
  readonly answered?: (headers: IncomingHttpHeaders) => OutgoingHttpHeaders;
}

export interface VerificationStage {
  readonly manifest: LoadedManifest;
  readonly edge: EdgeHost;
  readonly tlsPort: number;
  /** Chooses the fault of a request that a worker sends, or that the proxy sends to the edge. Default: none. */
  fault: (passing: Passing) => Fault | undefined;
  /** The URL of every request of a worker. */
  readonly asked: string[];
  /** Writes a manifest's documents to the stores. */
  publish(manifest: LoadedManifest): Promise<void>;
  /** Applies a manifest's containers. With `keep`, containers that it doesn’t name are not removed. */
  run(manifest: LoadedManifest | null, keep?: 'keep'): Promise<void>;
  removeContainer(role: 'processing' | 'preview'): Promise<void>;
  setVhosts(present: boolean): Promise<void>;
  report(manifest?: LoadedManifest): Promise<HostReport>;
  verify(
    host?: HostReport | null,
    options?: { budget?: number; secret?: string },
  ): Promise<VerificationReport>;
  close(): Promise<void>;
}

/**
 * A whole site with real parts: edge and verification worker in workerd, the embedded proxy with a local CA, both tag
 * servers as processes, and the host’s report. A forward proxy between them can inject faults.
 */
export async function startVerificationStage(): Promise<VerificationStage> {
  const home = await proxyHome();
  const { caFile } = home.ca;
  const ca = await readFile(caFile, 'utf8');
  const vendor = buildVendor();
  const vendorUrl = new URL(await vendor.listen({ host: '127.0.0.1', port: 0 }));
  const egress = await startEgress({ resolve: () => '127.0.0.1', ca: [ca] });
  const asked: string[] = [];

  const worldward = await meddler((passing) => {
    asked.push(passing.url.href);
    return { to: egress, fault: stage.fault(passing), targetOf: ({ href }) => href };
  });
  const edge = await startEdgeHost({
    port: 0,
    persistDir: join(home.directory, 'edge'),
    vars: { HOP_SECRET, TAG_UPSTREAM: `http://${VENDOR}:${vendorUrl.port}`, CONFIG_TTL_SECONDS: '0' },
    egress: worldward,
    verification: { port: 0, secret: VERIFICATION_SECRET },
  });
  const { verificationUrl } = edge;
  if (verificationUrl === null) throw new Error('there is no verification worker');
  const edgeward = await meddler((passing) => ({
    to: { host: '127.0.0.1', port: Number(edge.url.port) },
    fault: stage.fault(passing),
    targetOf: ({ pathname, search }) => pathname + search,
  }));

  const backend = embeddedBackend({
    ...home.settings,
    edgeUpstream: { scheme: 'http', address: '127.0.0.1', port: edgeward.port },
  });
  const { tlsPort } = await backend.start();
  const settings = containersSettings('test', '127.83', {
    identity: IDENTITY,
    originPort: tlsPort,
    caFile,
    startupDeadlineMs: 60_000,
  });
  const edition = (site: string) => settings.recycling.edition(site);
  const containers = containersApplier(
    settings,
    processRuntime({ entry: TAG_SERVER_ENTRY, caFileOf: async () => caFile, stopGraceSeconds: 1 }),
  );
  const manifest = siteManifest();
  const cloudflare = await startEmulator();
  const report = hostReporter({
    host: 'tag-1',
    hopSecret: HOP_SECRET,
    hostAddresses: ['127.0.0.1'],
    otherAddresses: [],
    hasAuthority: false,
    edgeTarget: undefined,
    edgePublicUrl: `http://{host}:${edge.url.port}`,
    proxy: { address: '127.0.0.1', port: tlsPort },
    lookup: dnsLookup([], 1_000),
    previews: runningPreviews(containers),
    previewPath: { containerSettings: { ...settings, edition }, gateway: async () => null },
    edgePath: { client: cloudflare.client(), zoneId: cloudflare.zone.id, script: EMULATOR_SCRIPT },
  });
  const { signal } = new AbortController();

  const stage: VerificationStage = {
    manifest,
    edge,
    tlsPort,
    asked,
    fault: () => undefined,
    async publish(one) {
      for (const { namespace, key, value } of kvDocuments(one, { originPort: tlsPort })) {
        await edge.kv[namespace].put(key, JSON.stringify(value));
      }
    },
    async run(one, keep) {
      const desired = one === null ? [] : containers.desired(one);
      const { changes } = containers.plan(desired, await containers.observe(desired, signal));
      const wanted = changes.filter(({ op }) => keep === undefined || op !== 'delete');
      await Promise.all(wanted.map((change) => containers.apply(change, signal)));
    },
    async removeContainer(role) {
      const desired = containers.desired(manifest);
      const { changes } = containers.plan([], await containers.observe(desired, signal));
      const gone = changes.filter(({ key }) => key.includes(`/${role}/`));
      await Promise.all(gone.map((change) => containers.apply(change, signal)));
    },
    async setVhosts(present) {
      const changes = proxyResources(manifest, { ...settings, edition }).map(({ key, spec }) =>
        put(key, present ? spec : null),
      );
      const outcomes = await backend.install(changes);
      for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    },
    report: (one = manifest) => report(one),
    async verify(host, { budget = 10_000, secret = VERIFICATION_SECRET } = {}) {
      const client = new VerificationClient({ url: verificationUrl.href, secret });
      const own = await report(manifest);
      const given = host === undefined ? own : host;
      const site = given?.site ?? own.site;
      const hostProblem = given === null ? 'the provisioner didn’t answer' : null;
      return await client.verify({ site, host: given, hostProblem, budget }, 'stage');
    },
    async close() {
      await containers.close?.();
      await edge.close();
      await cloudflare.close();
      await Promise.all([
        backend.close(),
        egress.close(),
        vendor.close(),
        worldward.close(),
        edgeward.close(),
      ]);
      await home.remove();
    },
  };
  await edge.setRoutes([`${manifest.hostnames.edge}/*`]);
  await stage.publish(manifest);
  await stage.run(manifest);
  await stage.setVhosts(true);
  return stage;
}

/** All names end in `.localhost`, so they resolve to loopback, also in the tag servers. */
function siteManifest(): LoadedManifest {
  return loadedManifest('shop', 0, {
    hostnames: {
      edge: 'shop.tagyard.localhost',
      origin: 'shop-origin.tagyard.localhost',
      preview: 'shop-preview.tagyard.localhost',
    },
    domains: [
      { domain: 'shop.localhost', webTagId: 'GTM-SHOP1234', token: 'ct_container0tok0000' },
      { domain: 'other.localhost', webTagId: 'GTM-SHOP5678', token: 'ct_container0tok0001' },
    ],
    customDomains: ['tags.shop.localhost'],
    features: { multi_domain: true },
  });
}

interface Way {
  readonly to: { readonly host: string; readonly port: number };
  readonly fault: Fault | undefined;
  /** The request target for a URL. */
  readonly targetOf: (url: URL) => string;
}

/** A forward proxy (for absolute targets) and a relay (for others) that applies the current fault. */
async function meddler(decide: (passing: Passing) => Way) {
  const server = http.createServer({ requireHostHeader: false }, (request, response) => {
    const { method = 'GET', headers } = request;
    const url = new URL(request.url ?? '/', `http://${headers.host ?? 'relay'}`);
    const { to, fault, targetOf } = decide({ method, url, headers });
    if (fault?.hold) return;
    if (fault?.answer !== undefined) {
      response.writeHead(fault.answer.status, fault.answer.headers).end();
      return;
    }
    const kept = Object.entries(headers).filter(([name]) => !fault?.strip?.includes(name));
    const path = targetOf(fault?.url ?? url);
    const onward = http.request({
      ...to,
      method,
      path,
      headers: { ...Object.fromEntries(kept), ...fault?.set },
      agent: false,
    });
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, fault?.answered?.(answer.headers) ?? answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port, // it listens on TCP
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
