/** A project of `vitest.config.ts`: a folder, or a suffix, that says what its tests need and when they run. */
interface Project {
  /** Globs from the root of the tree. */
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  /** The reason that `npm test` leaves it to `npm run test:all`; `null`: it runs in both. */
  readonly later: string | null;
  /**
   * With root, it runs in a network namespace of its own: clusters add interfaces, and Chromium drops requests when
   * interfaces of its network appear or disappear.
   */
  readonly ownNetwork?: boolean;
  /** Nothing runs beside it. */
  readonly alone?: boolean;
}

/** The folders of tests that start real components or whole instances; subfolders first. */
const FOLDERS = {
  browser: { folder: 'browser', later: 'Chromium', ownNetwork: true },
  'gateway-sites': { folder: 'gateway/sites', later: 'gateways of a cluster', ownNetwork: true },
  gateway: { folder: 'gateway', later: 'gateways of a cluster', ownNetwork: true },
  faults: { folder: 'faults', later: 'kills and outages' },
  'cluster-appliers': { folder: 'kubernetes/appliers', later: 'a cluster', ownNetwork: true },
  'cluster-sites': { folder: 'kubernetes/sites', later: 'a cluster', ownNetwork: true },
  databases: { folder: 'integration/databases', later: 'PostgreSQL' },
  containers: { folder: 'integration/containers', later: 'Docker' },
  cluster: { folder: 'kubernetes', later: 'a cluster', ownNetwork: true },
  services: { folder: 'integration/services', later: 'name servers, proxies and authorities' },
  fuzz: { folder: 'fuzz', later: 'long random runs', alone: true },
} as const;

const files = (folder: string) => `test/${folder}/**/*.test.ts`;
/** Whole daemons, management APIs, workerd or the command line, started many times. */
const DAEMON = 'test/**/*.daemon.test.ts';
const SLOW = 'test/**/*.slow.test.ts';
const folders = Object.values(FOLDERS).map(({ folder }) => folder);
const inFolders = folders.map(files);

/**
 * Where a test's file stands says what it needs and when it runs; no list names files. Tests of a folder run one after
 * another, because they use the same resource of the machine. They start in this order, so that most of the time two
 * of them compute and one mostly waits.
 */
export const PROJECTS: Readonly<Record<string, Project>> = {
  /** What `npm run check` runs. Its files run beside each other, as those of `daemon` do. */
  unit: { include: ['test/**/*.test.ts'], exclude: [DAEMON, SLOW, ...inFolders], later: null },
  daemon: { include: [DAEMON], exclude: inFolders, later: null },
  ...Object.fromEntries(
    Object.entries(FOLDERS).map(([name, { folder, ...rest }]) => [
      name,
      {
        ...rest,
        include: [files(folder)],
        exclude: folders.filter((other) => other.startsWith(`${folder}/`)).map(files),
      },
    ]),
  ),
  /** Needs no component either, but much time. */
  slow: { include: [SLOW], exclude: inFolders, later: 'slow by nature' },
};
