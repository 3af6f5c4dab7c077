import '../../../base/runtime/disposable-stack.ts';
import { styleText } from 'node:util';
import { writeDurably } from '../../../base/durable.ts';
import { howToInstall, missingPackages } from '../../../base/runtime/optional.ts';
import { processImageId } from '../../../sites/local/demo/process-image.ts';
import { serveIssuer } from '../../../sites/local/issuer/server.ts';
import { ensureLocalCa } from '../../../sites/local/local-ca.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { dockerBridgeGateway } from '../../clients/docker.ts';
import { Home } from '../instance/home.ts';
import { removeRun, writeRun } from '../instance/run-file.ts';
import type { Run } from '../instance/run-schema.ts';
import { CliError } from '../output/cli-error.ts';
import { Child, type ChildSpec } from './child.ts';
import { awaitDemo, DEMO_DOMAIN, type Demo, ensureDemo } from './demo.ts';
import { chooseDrivers, type Drivers } from './drivers.ts';
import { clearLeftovers, rememberPids } from './leftovers.ts';
import { loginProvider } from './login.ts';
import {
  cloudflareUrl,
  edgePart,
  type HostSetup,
  managementPart,
  pageVendorUrl,
  provisionerPart,
  type Setup,
} from './parts.ts';
import { Phases } from './phases.ts';
import { assignPorts } from './ports.ts';
import { awaitSettled } from './settled.ts';

const RUN_FILE = 'run.json';
const noop = () => undefined;

/**
 * Runs a whole instance under `homePath` until SIGTERM, SIGINT or SIGHUP. Each part is a child process with an
 * entry file of its own. The OpenID provider and the demo's servers run in this process. Throws `CliError` if the start
 * fails; in that case, no process keeps running.
 */
export async function runInstance(homePath: string, env: NodeJS.ProcessEnv): Promise<void> {
  const startedAt = performance.now();
  const missing = missingPackages();
  if (missing.length > 0) throw new CliError(howToInstall(missing));
  const home = new Home(homePath);
  await home.prepare();
  const lock = home.lock();
  const stack = new AsyncDisposableStack();
  stack.defer(() => lock.release());
  // If a part is stopped during its start, its own processes may still run.
  stack.defer(() => clearLeftovers(home));
  stack.defer(() => removeRun(home.at(RUN_FILE)));
  const stopped = stopSignal();
  try {
    const starting = start(home, env, stack);
    // If a start is stopped, it fails because its parts exit. Disposal waits for that failure, so that it stops every
    // process.
    stack.defer(() => starting.then(noop, noop));
    const started = await Promise.race([starting, stopped]);
    if (started !== undefined) printAddresses(started, performance.now() - startedAt);
    await stopped;
    process.stdout.write('stopping\n');
  } finally {
    await stack.disposeAsync();
  }
}

interface Started {
  readonly run: Run;
  readonly drivers: Drivers;
  readonly demoStatus: string;
}

async function start(home: Home, env: NodeJS.ProcessEnv, stack: AsyncDisposableStack): Promise<Started> {
  const phases = new Phases();
  const setup = await phases.time('preparation', () => prepare(home, env));
  const issuer = await serveIssuer(loginProvider(setup));
  if (stack.disposed) await issuer.close();
  stack.defer(() => issuer.close());

  const children: Child[] = [];
  const launch = async (spec: ChildSpec): Promise<Record<string, unknown>> => {
    const child = new Child(spec, () => rememberPids(home, pidsOf(children)));
    children.push(child);
    stack.defer(() => child.stop());
    return await phases.time(spec.name, () => child.start());
  };
  const zone = launch(edgePart(setup)).then(({ accountId, zoneId }) => ({
    accountId: String(accountId),
    zoneId: String(zoneId),
  }));
  const provisioner = zone.then((known) => launch(provisionerPart(setup, known)));
  const management = launch(managementPart(setup, issuer.jwksUrl));
  await settleAll([provisioner, management, phases.time('demo', () => startDemo(setup, stack))]);
  const { demo, container } = await phases.time('sites', () => settleSites(setup));

  const run = { ...describeRun(setup, demo, (await zone).accountId), phases: phases.seconds };
  await writeRun(home.at(RUN_FILE), run);
  return { run, drivers: setup.drivers, demoStatus: container.status };
}

/** Everything that the parts need before they start. */
async function prepare(home: Home, env: NodeJS.ProcessEnv): Promise<Setup> {
  await removeRun(home.at(RUN_FILE));
  const host = await openHome(home, env);
  printDrivers(host.drivers);
  printProof(env.DOMAIN_PROOF || 'off');
  printConsent(env.DEFAULT_CONSENT || 'opt_out');
  const inDocker = host.drivers.containers.name === 'docker';
  const setup: Setup = {
    ...host,
    demoSiteFile: home.at('demo-site.json'),
    tagServerImage: await tagServerImage(inDocker),
  };
  if (inDocker) await replaceImages(setup);
  return setup;
}

/** What the edge and the provisioner need before they start. Ends what a killed instance did not stop. */
export async function openHome(home: Home, env: NodeJS.ProcessEnv): Promise<HostSetup> {
  await clearLeftovers(home);
  const remembered = await home.instance();
  const { ports, remember } = await assignPorts(env, remembered.ports);
  const instance = await home.save({ ...remembered, ports: { ...remembered.ports, ...remember } });
  const drivers = await chooseDrivers(env);

  const { caFile } = await ensureLocalCa(home.at('ca'));
  await initSitesRepo(home.at('sites.git'));
  await writeDurably(home.at('age.key'), `${instance.age.identity}\n`);
  const gateway = drivers.containers.name === 'docker' ? await dockerBridgeGateway() : null;
  return {
    home,
    instance,
    ports,
    drivers,
    env,
    caFile,
    ageIdentityFile: home.at('age.key'),
    proxyAddresses: ['127.0.0.1', ...(gateway === null ? [] : [gateway])],
  };
}

/** The shop and the stand-in for Google's servers, in this process. */
async function startDemo({ ports, demoSiteFile }: Setup, stack: AsyncDisposableStack): Promise<void> {
  // Loaded here, while the other processes start.
  const { serveDemo } = await import('../../../sites/local/demo/servers.ts');
  const addresses = { shopPort: ports.shop, vendorPort: ports.vendor };
  const demo = await serveDemo({ ...addresses, siteFile: demoSiteFile }).catch((cause: Error) => {
    throw new CliError(`the demo could not start: ${cause.message}`, { cause });
  });
  if (stack.disposed) await demo.close();
  else stack.defer(() => demo.close());
}

/** Waits for the demo site and all other sites, and tells the demo's shop its site. */
async function settleSites(setup: Setup) {
  const { home, instance, ports, demoSiteFile } = setup;
  const managementUrl = `http://127.0.0.1:${ports.management}`;
  const demo = await ensureDemo(home, instance, managementUrl);
  const container = await awaitDemo(demo, managementUrl);
  await awaitSettled({ url: `http://127.0.0.1:${ports.provisioner}`, secret: instance.infraSecret });
  const { snippet = '', webTagId } = container.domains.find(({ domain }) => domain === DEMO_DOMAIN) ?? {};
  const edgeUrl = `http://${container.hostnames.edge}:${ports.edge}`;
  const vendorUrl = pageVendorUrl(setup);
  const consoleUrl = `${managementUrl}/console/containers/${container.id}`;
  await writeDurably(demoSiteFile, JSON.stringify({ snippet, edgeUrl, webTagId, vendorUrl, consoleUrl }));
  return { demo, container };
}

async function tagServerImage(inDocker: boolean): Promise<string> {
  if (!inDocker) return await processImageId();
  const { buildDemoImage } = await import('../../../sites/local/demo/image.ts');
  return await buildDemoImage();
}

/** Gives the built image to sites whose local image Docker doesn't have. Call it before the provisioner starts. */
async function replaceImages({ home, tagServerImage }: Setup): Promise<void> {
  const { replaceMissingImages } = await import('./replace-images.ts');
  const repo = { sitesRepo: home.at('sites.git'), cacheDir: home.at() };
  for (const site of await replaceMissingImages(repo, tagServerImage)) {
    process.stdout.write(`${site}: its image is not on this machine; it gets ${tagServerImage}\n`);
  }
}

/** Waits for all starts, then throws the first failure. No part is still starting when it throws. */
async function settleAll(starts: readonly Promise<unknown>[]): Promise<void> {
  const results = await Promise.allSettled(starts);
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

function describeRun(setup: Setup, demo: Demo, accountId: string): Run {
  const { home, instance, ports, drivers } = setup;
  const local = (port: number) => `http://127.0.0.1:${port}`;
  return {
    pid: process.pid,
    management: { url: local(ports.management) },
    provisioner: { url: local(ports.provisioner), secret: instance.infraSecret },
    edge: { url: local(ports.edge) },
    verification: { url: local(ports.verification) },
    cloudflare: { url: cloudflareUrl(setup), accountId },
    proxy: { url: local(ports.proxy) },
    sitesRepo: home.at('sites.git'),
    database: drivers.database.name,
    drivers: {
      dns: drivers.dns.name,
      edge: drivers.edge.name,
      proxy: drivers.proxy.name,
      containers: drivers.containers.name,
    },
    demo: {
      clientId: demo.clientId,
      token: demo.token,
      container: demo.container.id,
      pageUrl: `http://${DEMO_DOMAIN}:${ports.shop}/`,
    },
  };
}

function pidsOf(children: readonly Child[]) {
  return children.flatMap(({ pid, spec }) => (pid === null ? [] : [{ pid, script: spec.script }]));
}

function printDrivers(drivers: Drivers): void {
  for (const [what, { name, reason }] of Object.entries(drivers)) printSetting(what, name, reason);
}

/** Says whether clients must prove their domains. */
function printProof(mode: string): void {
  const reason =
    mode === 'off'
      ? 'every domain counts as its client’s (DOMAIN_PROOF=dns asks for a DNS record)'
      : 'only the edge hostname serves a domain until a DNS record proves it';
  printSetting('proof', `DOMAIN_PROOF=${mode}`, reason);
}

/** Says whom new sites identify. */
function printConsent(mode: string): void {
  const reason =
    mode === 'opt_out'
      ? 'new sites identify visitors unless they refuse (DEFAULT_CONSENT=required waits for a grant)'
      : 'new sites identify visitors only after a grant';
  printSetting('consent', `DEFAULT_CONSENT=${mode}`, reason);
}

function printSetting(what: string, value: string, reason: string): void {
  process.stdout.write(
    `${styleText('bold', what.padEnd(11))} ${value.padEnd(20)} ${styleText('dim', reason)}\n`,
  );
}

function printAddresses({ run, demoStatus }: Started, ms: number): void {
  // Each of the first three is a page. The parts' own addresses are in the run file.
  const lines: readonly (readonly [string, string])[] = [
    ['console', `${run.management.url}/console`],
    ['demo shop', `${run.demo.pageUrl} (${demoStatus})`],
    ['API', `${run.management.url}/docs`],
    ['sites repo', run.sitesRepo],
  ];
  const phases = Object.entries(run.phases ?? {}).map(([name, seconds]) => `${name} ${seconds.toFixed(1)}`);
  process.stdout.write(
    `\nready in ${(ms / 1000).toFixed(1)} s ${styleText('dim', `(${phases.join(', ')})`)}\n`,
  );
  for (const [what, where] of lines)
    process.stdout.write(`  ${what.padEnd(12)} ${styleText('cyan', where)}\n`);
  process.stdout.write('Press Ctrl-C to stop. The next start continues with the same data.\n');
}

/** Resolves at the first SIGTERM, SIGINT or SIGHUP. Later signals have no effect. */
function stopSignal(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve());
  return promise;
}
