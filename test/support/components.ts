import { execFileSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { describe, test } from 'vitest';
import { z } from 'zod';
import { sayDisturbances, UNLESS_DISTURBED } from './browser/disturbance.ts';

export const COMPONENTS = [
  'nginx',
  'docker',
  'postgresql',
  'knot',
  'pebble',
  'chromium',
  'reference',
] as const;
export type Component = (typeof COMPONENTS)[number];

/** `null`: it can be used here; else why it can't, in a line for people. */
export type Probes = Readonly<Record<Component, string | null>>;

/** The runner probes once and hands the outcome to its workers in this variable, as JSON. */
export const PROBES_VARIABLE = 'TAGYARD_TEST_COMPONENTS';

/** Daemons live in sbin, which a user's PATH may lack. */
export const PATH_WITH_SBIN = `${process.env.PATH ?? ''}:/usr/sbin:/sbin`;

/** The browser that suites drive: `CHROMIUM_PATH`, else Debian's. */
export const CHROMIUM = process.env.CHROMIUM_PATH ?? 'chromium';

/** Debian keeps the server's programs out of PATH, one folder a major version. */
export const POSTGRESQL_BIN = globSync('/usr/lib/postgresql/*/bin').sort().at(-1);

/** Public documents and test vectors, read where they lie beside the project and never copied into it. */
export const REFERENCE = new URL('../../../shared/', import.meta.url);

/** An argv for each program that succeeds only where the component answers, not just where a file is present. */
const ARGV: Record<Exclude<Component, 'reference'>, readonly [string, ...string[]]> = {
  nginx: ['nginx', '-v'],
  docker: ['docker', 'info'],
  postgresql: [`${POSTGRESQL_BIN ?? ''}${POSTGRESQL_BIN === undefined ? '' : '/'}postgres`, '--version'],
  knot: ['knotd', '--version'],
  pebble: ['pebble', '-h'],
  chromium: [CHROMIUM, '--version'],
};

function probe(component: Component): string | null {
  if (component === 'reference') {
    return existsSync(REFERENCE) ? null : 'the folder ../shared is not beside the project';
  }
  const [command, ...args] = ARGV[component];
  try {
    execFileSync(command, args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: 20_000,
      env: { ...process.env, PATH: PATH_WITH_SBIN },
    });
    return null;
  } catch (error) {
    return explain(command, error);
  }
}

/** A program that isn't there, and the last thing that one which is there said before it failed. */
function explain(command: string, error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ('code' in error && error.code === 'ENOENT') return `${command} is not installed`;
  const said = 'stderr' in error ? String(error.stderr).trim().split('\n').at(-1) : undefined;
  return `${command} failed: ${said || error.message.split('\n')[0]}`;
}

/** Tries all components, about a second in all. */
export function probeComponents(): Probes {
  return {
    nginx: probe('nginx'),
    docker: probe('docker'),
    postgresql: probe('postgresql'),
    knot: probe('knot'),
    pebble: probe('pebble'),
    chromium: probe('chromium'),
    reference: probe('reference'),
  };
}

const handedOver = z.record(z.enum(COMPONENTS), z.nullable(z.string()));

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

/** `TAGYARD_REQUIRE_ALL=1`: a missing component is a failure, not a suite left out. */
export const allRequired = (): boolean => process.env.TAGYARD_REQUIRE_ALL === '1';

/**
 * `describe` for a suite that needs real components: left out where one is missing; where all are required, one
 * failing test says which one in its place.
 */
export function describeWith(
  components: Component | readonly Component[],
  name: string,
  body: () => void,
): void {
  const needed = typeof components === 'string' ? [components] : components;
  const reasons = needed.map(missing).filter((reason) => reason !== null);
  if (reasons.length > 0 && allRequired()) {
    describe(name, () => {
      test(`needs ${needed.join(' and ')}`, () => {
        throw new Error(reasons.join('; '));
      });
    });
    return;
  }
  if (!needed.includes('chromium')) return void describe.skipIf(reasons.length > 0)(name, body);
  describe.skipIf(reasons.length > 0)(name, UNLESS_DISTURBED, () => {
    sayDisturbances();
    body();
  });
}
