import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { proxyApplier } from '../../gitops/appliers/proxy/applier.ts';
import type { CertificateSource } from '../../gitops/appliers/proxy/certificates.ts';
import { nginxBackend } from '../../gitops/appliers/proxy/nginx/backend.ts';
import { runningMaster, workersOf } from '../../gitops/appliers/proxy/nginx/process.ts';
import { containerSpecs } from '../../sites/manifest/containers.ts';
import { Slots } from '../../sites/manifest/slots.ts';
import { eventually } from '../support/eventually.ts';
import { loadedManifest } from '../support/manifest.ts';
import { NGINX, NGINX_SETTINGS } from '../support/proxy/nginx.ts';
import { IDENTITY, proxyHome } from '../support/proxy/proxy.ts';
import { startUpstream } from '../support/upstream.ts';
import type { Bench, Suite } from './bench.ts';
import { residentMiB } from './memory.ts';

const SITES = 1_000;
const AT_ONCE = 100;
const { signal } = new AbortController();

/**
 * What 1,000 sites cost nginx. Each has three names, so there are 3,000 vhosts. One wildcard certificate covers all
 * origin and preview hostnames.
 */
export const hostNginx: Suite = async (bench) => {
  await using bed = await startBed(SITES);
  await bench(`nginx: the first ${SITES} sites, at once`, {
    unit: 's',
    run: () => seconds(() => bed.apply(0, SITES)),
  });
  await bench('  nginx -t', { unit: 's of CPU', times: 3, run: bed.test });
  await bench('  resident memory', { unit: 'MiB', run: bed.memory });
  let round = 0;
  await bench('  one more site, from its change to its vhosts served', {
    unit: 's',
    times: 3,
    run: () => seconds(() => bed.apply(SITES + round++, 1)),
  });
  await bench('  most memory during a reload', {
    unit: 'MiB',
    run: () => bed.peakDuring(() => bed.apply(SITES + round, 1)),
  });
  await reloads(bench);
};

/** Sites that come at once, and sites that come one after another while a reload is under way already. */
async function reloads(bench: Bench): Promise<void> {
  for (const [name, apartMs] of [
    ['at once', 0],
    ['30 ms apart', 30],
  ] as const) {
    await using bed = await startBed(AT_ONCE);
    const before = await bed.generations();
    await bed.apply(0, AT_ONCE, apartMs);
    await bench(`nginx: reloads for ${AT_ONCE} sites ${name}${apartMs === 0 ? ' (at most 3)' : ''}`, {
      unit: 'reloads',
      run: async () => (await bed.generations()) - before,
    });
  }
}

async function startBed(count: number) {
  await using stack = new AsyncDisposableStack();
  const home = await proxyHome();
  stack.defer(() => home.remove());
  const tls = await mkdtemp(join(tmpdir(), 'tagyard-bench-tls-'));
  stack.defer(() => rm(tls, { recursive: true }));
  const upstream = await startUpstream();
  stack.defer(() => upstream.close());
  // Copies of one certificate and key under every name; the checks for an operator's own files would refuse them.
  const certificates: CertificateSource = {
    retain: async () => undefined,
    async pathsFor(host) {
      const name = host.startsWith('metrics.') ? host : `_.${host.split('.').slice(1).join('.')}`;
      return { cert: join(tls, `${name}.pem`), key: join(tls, `${name}.key`) };
    },
  };
  const backend = nginxBackend({
    ...home.settings,
    ...NGINX_SETTINGS,
    workerProcesses: 2,
    shutdownSeconds: 1,
    certificates,
    edgeUpstream: { scheme: 'http', address: upstream.address, port: upstream.port },
  });
  stack.defer(() => backend.close());
  const { tlsPort } = await backend.start();
  const containers = { slots: new Slots('127.93'), originPort: tlsPort };
  const applier = proxyApplier({
    backend,
    identity: IDENTITY,
    containers,
    certificates,
  });
  const manifests = Array.from({ length: count + 10 }, (_, index) =>
    loadedManifest(`bench-${index}`, index, { customDomains: [`metrics.bench-${index}.example`] }),
  );
  // All have the same key: the bench measures what reading keys costs nginx, not what making them costs.
  const { cert, key } = await home.ca.pathsFor('wildcard.example');
  const copy = async (name: string) => {
    await execa('cp', [cert, join(tls, `${name}.pem`)]);
    await execa('cp', [key, join(tls, `${name}.key`)]);
  };
  const parents = manifests.flatMap(({ hostnames }) =>
    [hostnames.origin, hostnames.preview].map((host) => `_.${host.split('.').slice(1).join('.')}`),
  );
  for (const name of new Set(parents)) await copy(name);
  for (const { customDomains } of manifests) for (const domain of customDomains) await copy(domain);
  // Every origin answers from now on, so that waiting for it is no part of the measurement.
  const specs = manifests.flatMap((manifest) => containerSpecs(manifest, containers));
  const servers = await Promise.all(
    specs
      .filter(({ role }) => role === 'processing')
      .map(({ address, port }) => startUpstream({ address, port })),
  );
  stack.defer(async () => void (await Promise.all(servers.map((server) => server.close()))));

  const { prefix } = home.settings;
  const master = async () => (await runningMaster(prefix)) ?? 0;
  const owned = stack.move();
  return {
    async apply(first: number, size: number, apartMs = 0) {
      const running: Promise<void>[] = [];
      for (const manifest of manifests.slice(first, first + size)) {
        const desired = applier.desired(manifest);
        const { changes } = applier.plan(desired, []);
        running.push(...changes.map((change) => applier.apply(change, signal)));
        if (apartMs > 0) await tick(apartMs);
      }
      await Promise.all(running);
    },
    /** CPU time instead of elapsed time, because other programs may run on the machine. */
    async test() {
      const { stdout } = await execa('sh', [
        '-c',
        '"$0" -t -q -p "$1" -e stderr -c current/nginx.conf && times',
        NGINX,
        prefix,
      ]);
      // `times` prints the shell's own CPU time, and below it that of its children: user and system, as 0m2.51s.
      const [, children = ''] = stdout.trim().split('\n');
      const spent = [...children.matchAll(/([0-9]+)m([0-9.]+)s/g)];
      return spent.reduce((sum, [, minutes, rest]) => sum + 60 * Number(minutes) + Number(rest), 0);
    },
    memory: async () => residentMiB(await master()),
    async peakDuring(work: () => Promise<void>) {
      const root = await master();
      let most = 0;
      let over = false;
      const done = work().finally(() => {
        over = true;
      });
      while (!over) {
        most = Math.max(most, residentMiB(root));
        await tick(20);
      }
      await done;
      await eventually(async () => {
        if ((await workersOf(root)).length > 2) throw new Error('old workers are still running');
      });
      return most;
    },
    /** The number of the current generation. It counts the reloads too, since nginx loads every generation. */
    async generations() {
      const { stdout } = await execa('readlink', [join(prefix, 'current')]);
      return Number(stdout.split('.')[1]);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Waits for a fixed time: there is no event to wait for. */
function tick(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, ms);
  return promise;
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1000;
}
