import { execFileSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { describe, test } from 'vitest';
import { z } from 'zod';
import { sayDisturbances, UNLESS_DISTURBED } from './browser/disturbance.ts';

export const COMPONENTS = [
  'nginx',
  'apache',
  'caddy',
  'haproxy',
  'docker',
  'postgresql',
  'pgbouncer',
  'knot',
  'pebble',
  'opensmtpd',
  'chromium',
  'certbot',
  'reference',
  'root',
  'mount',
  'network',
  'iptables',
  'blocklists',
  'places',
  'versitygw',
  'keycloak',
  'kubernetes',
  'gixy',
  'systemd',
  'shells',
  'prometheus',
  'ssh',
] as const;
type Component = (typeof COMPONENTS)[number];

/** Why a component can't be used on this machine, in one line; `null` where it can. Only what was probed is in it. */
type Probes = Readonly<Partial<Record<Component, string | null>>>;

/** The runner probes once and hands the outcome to its workers in this variable, as JSON. */
export const PROBES_VARIABLE = 'TAGYARD_TEST_COMPONENTS';

const REFUSALS_NAME = 'tagyard-refusals-';
/** This process's folder of programs that refuse to be started (`declared-programs.ts`). It may not exist. */
export const REFUSALS = join(tmpdir(), `${REFUSALS_NAME}${process.pid}`);

/** PATH without such folders: for what is no test, and for a test that runs the tests' runner. */
export const MACHINE_PATH = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes(REFUSALS_NAME))
  .join(delimiter);

/** Daemons are installed to sbin, which a user's PATH may lack. */
const withSbin = (path: string) => [path, '/usr/sbin', '/sbin'].join(delimiter);
export const PATH_WITH_SBIN = withSbin([REFUSALS, MACHINE_PATH].join(delimiter));

/** The browser that suites start: `CHROMIUM_PATH`, else Debian's. */
const CHROMIUM = process.env.CHROMIUM_PATH ?? 'chromium';

/** Debian installs the server's programs outside PATH, in one folder for each major version. */
export const POSTGRESQL_BIN = globSync('/usr/lib/postgresql/*/bin').sort().at(-1);

/** Debian's own, for the modules of its packages. */
export const DEBIAN_PYTHON = '/usr/bin/python3';

/** Public documents and test vectors. They are read from beside the project and never copied into it. */
export const REFERENCE = new URL('../../../shared/', import.meta.url);

/** EasyList and EasyPrivacy: `BLOCK_LISTS` names their folder, else it is that of Debian's uBlock Origin for Firefox. */
export const BLOCK_LISTS =
  process.env.BLOCK_LISTS ??
  globSync('/usr/share/mozilla/extensions/*/uBlock0@raymondhill.net/assets/thirdparties/easylist')[0];

/** What the scripts `test/setup-*.sh` cache, by its version. */
const CACHE = join(homedir(), '.cache/tagyard');

/** A database of the countries of addresses (DB-IP), in a file that nginx's GeoIP2 module reads. */
export const PLACES =
  process.env.PLACE_DATABASE ?? globSync(`${CACHE}/dbip-country-*.mmdb`).sort().at(-1) ?? '';

/** A server of S3 over a folder. */
export const VERSITYGW = globSync(`${CACHE}/versitygw-v*`).sort().at(-1) ?? 'versitygw';

/** The program that starts Keycloak, an OpenID provider. */
export const KEYCLOAK = join(globSync(`${CACHE}/keycloak-*`).sort().at(-1) ?? 'keycloak', 'bin/kc.sh');
/** A program that judges configurations of nginx. */
export const GIXY = join(globSync(`${CACHE}/gixy-*`).sort().at(-1) ?? 'gixy', 'bin/gixy');

/** The programs of a Kubernetes cluster. */
export const KUBERNETES =
  globSync(`${CACHE}/kubernetes-${'[0-9a-f]'.repeat(16)}`)
    .sort()
    .at(-1) ?? '';

/** For each component, a command that succeeds only where the component answers, not just where a file is present. */
const ARGV: Record<
  Exclude<Component, 'reference' | 'blocklists' | 'places' | 'root'>,
  readonly [string, ...string[]]
> = {
  nginx: ['nginx', '-v'],
  apache: ['apache2', '-v'],
  caddy: ['caddy', 'version'],
  haproxy: ['haproxy', '-v'],
  docker: ['docker', 'info'],
  postgresql: [`${POSTGRESQL_BIN ?? ''}${POSTGRESQL_BIN === undefined ? '' : '/'}postgres`, '--version'],
  pgbouncer: ['pgbouncer', '--version'],
  knot: ['knotd', '--version'],
  pebble: ['pebble', '-h'],
  // Checks Debian's own configuration, which smtpd permits to root only.
  opensmtpd: ['smtpd', '-n'],
  chromium: [CHROMIUM, '--version'],
  // Needs root, and is not allowed in every container.
  mount: ['unshare', '--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'],
  // Not allowed in every container, and never in a chroot.
  network: ['unshare', '--net', '--map-root-user', 'true'],
  iptables: ['iptables', '--version'],
  versitygw: [VERSITYGW, '--version'],
  // Needs Java 17 or newer.
  keycloak: [KEYCLOAK, '--version'],
  kubernetes: [join(KUBERNETES, 'kube-apiserver'), '--version'],
  gixy: [GIXY, '--version'],
  systemd: ['systemd-analyze', '--version'],
  shells: ['zsh', '-c', 'fish --version'],
  prometheus: ['promtool', '--version'],
  ssh: ['ssh', '-V'],
  certbot: [DEBIAN_PYTHON, '-c', 'import certbot_dns_cloudflare'],
};

const IPTABLES = ['iptables', 'ip6tables'].flatMap((name) => [name, `${name}-save`, `${name}-restore`]);

/**
 * What a component has in PATH: a bare machine lacks these programs. `declared-programs.ts` refuses them to test files
 * that don't declare the component.
 */
const PROGRAMS: Partial<Record<Component, readonly string[]>> = {
  nginx: ['nginx'],
  apache: ['apache2'],
  caddy: ['caddy'],
  haproxy: ['haproxy'],
  docker: ['docker', 'dockerd', 'containerd', 'docker-compose', 'ip', ...IPTABLES],
  postgresql: ['postgres', 'initdb', 'pg_ctl', 'psql', 'pg_dump', 'pg_restore'],
  knot: ['knotd', 'knotc', 'kdig', 'knsupdate'],
  pebble: ['pebble', 'pebble-challtestsrv'],
  opensmtpd: ['smtpd', 'smtpctl'],
  chromium: [CHROMIUM],
  certbot: ['certbot'],
  iptables: IPTABLES,
  keycloak: ['java'],
  systemd: ['systemd-analyze', 'systemctl'],
  shells: ['zsh', 'fish'],
  prometheus: ['prometheus', 'promtool'],
  kubernetes: ['ip', ...IPTABLES],
  ssh: ['ssh-keygen'],
};

/** The programs that a test file must not start, because no component that it declares has them. */
export function undeclaredPrograms(source: string): string[] {
  const declared = new Set([...componentsOf(source)].flatMap((component) => PROGRAMS[component] ?? []));
  return [...new Set(Object.values(PROGRAMS).flat())].filter((program) => !declared.has(program));
}

function probe(component: Component): string | null {
  if (component === 'reference') {
    return existsSync(REFERENCE) ? null : 'the folder ../shared is not beside the project';
  }
  if (component === 'root') {
    return process.getuid?.() === 0
      ? null
      : 'the tests don’t run as root, which they need to write firewalls and start engines';
  }
  if (component === 'blocklists') {
    return existsSync(`${BLOCK_LISTS}/easyprivacy.txt`)
      ? null
      : 'Debian’s webext-ublock-origin-firefox is not installed, and BLOCK_LISTS names no folder with easyprivacy.txt';
  }
  if (component === 'places') {
    if (!existsSync(PLACES)) return `${CACHE} has no database of countries: run test/setup-debian.sh`;
    return existsSync('/usr/lib/nginx/modules/ngx_http_geoip2_module.so')
      ? null
      : 'Debian’s libnginx-mod-http-geoip2 is not installed';
  }
  const [command, ...args] = ARGV[component];
  try {
    execFileSync(command, args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: 20_000,
      env: { ...process.env, PATH: withSbin(MACHINE_PATH) },
    });
    return null;
  } catch (error) {
    return explain(command, error);
  }
}

/** Says that the program is missing, or repeats the last line that it wrote before it failed. */
function explain(command: string, error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ('code' in error && error.code === 'ENOENT') return `${command} is not installed`;
  const said = 'stderr' in error ? String(error.stderr).trim().split('\n').at(-1) : undefined;
  return `${command} failed: ${said || error.message.split('\n')[0]}`;
}

/** Probes the given components; about a second for all of them. */
export function probeComponents(components: Iterable<Component>): Probes {
  return Object.fromEntries([...components].map((component) => [component, probe(component)]));
}

const handedOver = z.partialRecord(z.enum(COMPONENTS), z.nullable(z.string()));

/** `describeWith('nginx'`, `describeWith(['nginx', 'docker']`, `testWith('chromium'`, `missing('reference')`. */
const DECLARATION = /\b(?:describeWith|testWith|missing)\(\s*(\[[^\]]*\]|'[a-z]+')/g;

/** The components that a test file declares in its source; all components if it uses `COMPONENTS`. */
export function componentsOf(source: string): ReadonlySet<Component> {
  if (/\bCOMPONENTS\b/.test(source)) return new Set(COMPONENTS);
  const declared = [...source.matchAll(DECLARATION)].map(([, names = '']) => names).join();
  return new Set(COMPONENTS.filter((component) => declared.includes(`'${component}'`)));
}

const known: Partial<Record<Component, string | null>> =
  process.env[PROBES_VARIABLE] === undefined
    ? {}
    : handedOver.parse(JSON.parse(process.env[PROBES_VARIABLE]));

/** Why a component can't be used on this machine, or `null` where it can. */
export function missing(component: Component): string | null {
  const answer = known[component];
  if (answer !== undefined) return answer;
  const found = probe(component);
  known[component] = found;
  return found;
}

/** `TAGYARD_REQUIRE_ALL=1`: a missing component fails the run; otherwise its suites are skipped. */
export const allRequired = (): boolean => process.env.TAGYARD_REQUIRE_ALL === '1';

/** Why the components can't all be used, or `null` where they can. */
function reasonAgainst(components: readonly Component[]): string | null {
  const reasons = components.map(missing).filter((reason) => reason !== null);
  return reasons.length === 0 ? null : reasons.join('; ');
}

function fail(reason: string) {
  return () => {
    throw new Error(reason);
  };
}

/**
 * `describe` for a suite that needs real components. Where one is missing, the suite is skipped; where all are required,
 * one failing test takes its place and says what is missing.
 */
export function describeWith(
  components: Component | readonly Component[],
  name: string,
  body: () => void,
): void {
  const needed = typeof components === 'string' ? [components] : components;
  const reason = reasonAgainst(needed);
  if (reason !== null && allRequired()) {
    describe(name, () => void test(`needs ${needed.join(' and ')}`, fail(reason)));
    return;
  }
  // Vitest runs the body of a skipped suite to collect its tests. The body may read what is missing, so it must not run.
  if (reason !== null)
    return void describe.skip(name, () => void test(`needs ${needed.join(' and ')}`, () => {}));
  if (!needed.includes('chromium')) return void describe(name, body);
  describe(name, UNLESS_DISTURBED, () => {
    sayDisturbances();
    body();
  });
}

/** `test` for a single case that needs more components than its suite. */
export function testWith(
  components: Component | readonly Component[],
  name: string,
  body: () => Promise<void>,
): void {
  const needed = [components].flat();
  const reason = reasonAgainst(needed);
  if (reason !== null && allRequired())
    return void test(`${name}: needs ${needed.join(' and ')}`, fail(reason));
  test.skipIf(reason !== null)(name, body);
}
