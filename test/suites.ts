import { globSync } from 'node:fs';
import { matchesGlob } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/**
 * Files of one pool run one after another, because they use the same resource of the machine, or would together need
 * too much of its processors. One more pool than there are cores runs at once. They start in this order, so that most
 * of the time two pools compute and one mostly waits, up to the end. Each pool is one or more projects of
 * `vitest.config.ts`.
 */
export const POOLS = {
  /** Chromium. */
  browser: ['browser'],
  /**
   * Kubernetes clusters made of processes of this machine, in five pools: each has names, addresses and control groups
   * of its own, and a test with a cluster mostly waits.
   */
  gateway: ['gateway'],
  /** Daemons, hosts and whole instances that are killed again and again. */
  faults: ['faults'],
  clusterAppliers: ['clusterAppliers'],
  clusterSites: ['clusterSites'],
  /** PostgreSQL, and management processes that are killed again and again. */
  databases: ['databases'],
  /** The machine's Docker engine. It mostly waits, too. */
  containers: ['containers'],
  /** Whole management APIs, started many times. No component. */
  api: ['api'],
  cluster: ['cluster'],
  /** Name servers, proxies and authorities on free ports. */
  services: ['services'],
  /** Whole daemons, workerd, git or this runner, started many times. No component. */
  daemons: ['daemons'],
  gatewaySites: ['gatewaySites'],
  /** The unit tests, which take little time. No component. */
  unit: ['unit'],
  /** A whole instance whose parts must answer in time. */
  fuzz: ['fuzz'],
} as const;
export type Pool = keyof typeof POOLS;
/**
 * With root, these pools run in a network namespace of their own. In the same network, Chromium would drop requests
 * when interfaces appear or disappear, as those of a cluster and of Docker's containers do.
 */
export const OWN_NETWORK: ReadonlySet<Pool> = new Set([
  'cluster',
  'clusterSites',
  'clusterAppliers',
  'gateway',
  'gatewaySites',
  'browser',
]);
/** If both of these pools run in the machine's own network, they run one after the other, for the same reason. */
export const ON_ONE_NETWORK: ReadonlySet<Pool> = new Set(['containers', 'browser']);
/** These pools run after all others, one by one, with nothing beside them. */
export const ALONE: ReadonlySet<Pool> = new Set(['fuzz']);
export type Project = (typeof POOLS)[Pool][number];

interface Suite {
  readonly name: string;
  readonly project: Project;
  /** Globs from the root of the tree. A file belongs to the first suite that has it. */
  readonly files: readonly string[];
  /** Seconds that its files take together on two idle cores. The report marks a suite that takes longer. */
  readonly budget: number;
}

/** In the order in which the report lists them. */
export const SUITES: readonly Suite[] = [
  {
    name: 'api',
    project: 'api',
    files: [
      'test/management/{access,auth,consent,containers,forget-keys,hardening,host-watch,main}.test.ts',
      'test/management/{openapi,organisations,projection,reading,retention,saga,service-account,tenants}.test.ts',
      'test/management/{audit,container-*,db/*,ending,events,events/*,foreign-names,idempotency}.test.ts',
      'test/management/{if-match,instance-verbs}.test.ts',
      'test/management/{operations,policies,quotas,raw-objects,refused-values,requests*,rollouts}.test.ts',
      'test/management/{same-origin,session,traffic/*,unprojected,validation,verification}.test.ts',
      'test/management/{webhook-slots,webhooks}.test.ts',
      'test/management/tenants/*.test.ts',
    ],
    budget: 450,
  },
  {
    name: 'daemons',
    project: 'daemons',
    files: [
      'test/run.test.ts',
      'test/edge/{host,logs,place,rude-plugins}.test.ts',
      'test/edge/**/deploy.test.ts',
      'test/plugins/{cookie-restoration,detection,kit,server-proxy}.test.ts',
      'test/gitops/main.test.ts',
      'test/gitops/appliers/registration.test.ts',
      'test/gitops/appliers/containers/{bring-up,health,seen-healthy}.test.ts',
      'test/gitops/cli/*.test.ts',
      'test/gitops/clients/git*.test.ts',
      'test/gitops/clients/management/*.test.ts',
      'test/gitops/embedded/cloudflare/{certbot,wrangler}.test.ts',
      'test/gitops/desired/{claims,client-domains,contested,late-reads,many-broken,misplaced,policies,tenants,unusable}.test.ts',
      'test/gitops/http/{git-history,quotas}.test.ts',
      'test/gitops/loop/{forgotten,full-pass-retries,given-up,guards,loop,remote-away,schedule,taken-names}.test.ts',
      'test/gitops/pass/pass.test.ts',
      'test/gitops/manifest/read.test.ts',
      'test/gitops/sites-repo/{credentials,gc,history/path-commits,host-lease,lease/process-identity,sites-repo,stale-lock}.test.ts',
      'test/sites/demo/tag-server-process.test.ts',
      'test/conform/command.test.ts',
      'test/package/install.test.ts',
    ],
    budget: 350,
  },
  { name: 'check', project: 'unit', files: ['test/*.test.ts'], budget: 20 },
  { name: 'plugins', project: 'unit', files: ['test/plugins/**/*.test.ts'], budget: 15 },
  { name: 'edge', project: 'unit', files: ['test/edge/**/*.test.ts'], budget: 30 },
  { name: 'gitops', project: 'unit', files: ['test/gitops/**/*.test.ts'], budget: 75 },
  { name: 'management', project: 'unit', files: ['test/management/**/*.test.ts'], budget: 60 },
  { name: 'package', project: 'unit', files: ['test/package/*.test.ts'], budget: 10 },
  { name: 'sites', project: 'unit', files: ['test/sites/**/*.test.ts'], budget: 15 },
  {
    name: 'database',
    project: 'databases',
    files: ['test/integration/management-*.test.ts', 'test/integration/databases/kills.test.ts'],
    budget: 930,
  },
  {
    name: 'certificates',
    project: 'services',
    files: ['test/integration/services/certificates.test.ts'],
    budget: 90,
  },
  { name: 'dns', project: 'services', files: ['test/integration/dns-*.test.ts'], budget: 90 },
  {
    name: 'lists',
    project: 'services',
    files: ['test/integration/services/block-lists.test.ts'],
    budget: 10,
  },
  { name: 'forwarders', project: 'services', files: ['test/integration/forwarders*.test.ts'], budget: 30 },
  { name: 'proxy', project: 'services', files: ['test/integration/proxy*.test.ts'], budget: 140 },
  {
    name: 'processes',
    project: 'services',
    files: [
      'test/integration/services/containers-process.test.ts',
      'test/integration/services/container-logs.test.ts',
      'test/integration/services/cloudflare-at-home.test.ts',
      'test/integration/services/host-report.test.ts',
      'test/integration/services/policy-script.test.ts',
      'test/integration/verification*.test.ts',
    ],
    budget: 170,
  },
  {
    name: 'cluster-sites',
    project: 'clusterSites',
    files: ['test/kubernetes/{load,rollout,site}.test.ts'],
    budget: 300,
  },
  {
    name: 'cluster-appliers',
    project: 'clusterAppliers',
    files: ['test/kubernetes/{applier*,objects,one-namespace,secrets}.test.ts'],
    budget: 320,
  },
  // Tests of the tests' own clusters, of the client and the chart, and of what needs no pod.
  { name: 'cluster', project: 'cluster', files: ['test/kubernetes/*.test.ts'], budget: 270 },
  {
    // With an engine in a network namespace of its own: Chromium on the machine doesn't notice its containers.
    name: 'isolation',
    project: 'faults',
    files: ['test/faults/containers-isolation.test.ts', 'test/faults/network.test.ts'],
    budget: 130,
  },
  {
    name: 'gateway-sites',
    project: 'gatewaySites',
    files: ['test/gateway/{move,preview,site}.test.ts'],
    budget: 350,
  },
  { name: 'gateway', project: 'gateway', files: ['test/gateway/*.test.ts'], budget: 310 },
  {
    name: 'containers',
    project: 'containers',
    files: ['test/integration/containers-*.test.ts', 'test/integration/containers/conform-image.test.ts'],
    budget: 720,
  },
  { name: 'conform', project: 'unit', files: ['test/conform/**/*.test.ts'], budget: 5 },
  { name: 'flow', project: 'containers', files: ['test/integration/containers/flow.test.ts'], budget: 95 },
  { name: 'browser', project: 'browser', files: ['test/browser/**/*.test.ts'], budget: 670 },
  {
    name: 'kills',
    project: 'faults',
    files: ['test/faults/{kill,drain}.test.ts'],
    budget: 300,
  },
  {
    name: 'instances',
    project: 'faults',
    files: ['test/faults/{instance,host,host-move}.test.ts'],
    budget: 100,
  },
  { name: 'fuzz', project: 'fuzz', files: ['test/fuzz/*.test.ts'], budget: 95 },
  { name: 'outages', project: 'faults', files: ['test/faults/**/*.test.ts'], budget: 270 },
];

/** The suite of a file; `path` is relative to the tree's root, with forward slashes. */
export function suiteOf(path: string): Suite | undefined {
  return SUITES.find(({ files }) => files.some((pattern) => matchesGlob(path, pattern)));
}

/** The test files of a project, in the order of the suites and by name in each. */
export function filesOf(project: Project): string[] {
  const all = globSync('test/**/*.test.ts', { cwd: ROOT }).sort();
  return SUITES.filter((suite) => suite.project === project).flatMap((suite) =>
    all.filter((path) => suiteOf(path) === suite),
  );
}
