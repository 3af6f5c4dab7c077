import type { Clock } from '../../../base/clock.ts';
import { GivenUpError, RetryableError, TerminalError } from '../../../base/errors.ts';
import type { ContainerSpec } from '../../../sites/manifest/containers.ts';
import { LONGEST_READ, redact } from './output/redact.ts';

/** After this many failed starts, the spec itself is assumed to be wrong. */
const FAILURES_UNTIL_TERMINAL = 3;
/** A start of another container within this time, in milliseconds, shows that starts are possible on this host. */
const LATELY_MS = 120_000;
const SHOWN_LINES = 5;
const LONGEST_LINE = 300;

interface StartFailure {
  readonly name: string;
  readonly spec: ContainerSpec;
  /** What happened, for example `it died (exit code 1)`. */
  readonly what: string;
  /** The last lines of its output. */
  readonly lines: readonly string[];
}

/**
 * Counts the failed starts of each spec, by its resource's hash, and maps each one to an error: retryable at first,
 * terminal once it repeats, given up after `giveUpAfter` failures of the site's own. A failure is the site's own if its
 * CONTAINER_CONFIG is refused or can't be read, or if another container of this host has started recently. Otherwise
 * the host may be the cause: a tag server that can't reach Google ends at its start. A spec that this process has seen
 * healthy is never given up: the fault is outside it (the network, Google) and temporary.
 */
export class Failures {
  readonly #giveUpAfter: number;
  readonly #clock: Clock;
  readonly #counts = new Map<string, { times: number; ofSite: number }>();
  readonly #proven = new Set<string>();
  /** When each container was last healthy after a start, by name; only recent ones. */
  readonly #started = new Map<string, number>();

  constructor(giveUpAfter: number, clock: Clock) {
    this.#giveUpAfter = giveUpAfter;
    this.#clock = clock;
  }

  /** A new container of this name was healthy. */
  started(name: string): void {
    this.#forgetOld();
    this.#started.set(name, this.#clock.now());
  }

  /** A container of the resource with this hash was seen healthy. */
  prove(hash: string): void {
    this.#proven.add(hash);
    this.#counts.delete(hash);
  }

  /** Forgets all other specs. */
  retain(hashes: ReadonlySet<string>): void {
    for (const hash of this.#counts.keys()) if (!hashes.has(hash)) this.#counts.delete(hash);
    for (const hash of this.#proven) if (!hashes.has(hash)) this.#proven.delete(hash);
  }

  count(hash: string, { name, spec, what, lines }: StartFailure): RetryableError | TerminalError {
    const count = this.#counts.get(hash) ?? { times: 0, ofSite: 0 };
    this.#counts.set(hash, count);
    const faultyConfig = faultOfConfig(lines);
    const isOfSite = faultyConfig !== undefined || this.#couldOtherStart(name);
    count.times += 1;
    if (isOfSite) count.ofSite += 1;
    const { times, ofSite } = count;
    const message = [
      `${name} doesn’t start: ${what}`,
      shownOutput(spec, lines),
      ...(faultyConfig === undefined ? [] : [faultyConfig]),
    ].join('; ');
    if (times < FAILURES_UNTIL_TERMINAL) return new RetryableError(message, { isOfSite });
    const repeated = `${message}; ${times} times in a row`;
    if (ofSite < this.#giveUpAfter || this.#proven.has(hash)) {
      return new TerminalError(repeated, { isOfSite });
    }
    return new GivenUpError(
      `${repeated}. It is not started again until its manifest changes or you run tagyard apply`,
      { isOfSite },
    );
  }

  #couldOtherStart(name: string): boolean {
    this.#forgetOld();
    return [...this.#started.keys()].some((other) => other !== name);
  }

  #forgetOld(): void {
    const since = this.#clock.now() - LATELY_MS;
    for (const [name, at] of this.#started) if (at < since) this.#started.delete(name);
  }
}

/** The last lines without secrets. Never throws: a failure is counted even if its output can't be shown. */
function shownOutput(spec: ContainerSpec, lines: readonly string[]): string {
  try {
    const shown = lines.slice(-SHOWN_LINES).map((line) => redact(spec, line).slice(0, LONGEST_LINE));
    return shown.length === 0 ? 'it wrote nothing' : `it wrote: ${shown.join(' | ')}`;
  } catch {
    return 'its output isn’t shown, because its secrets can’t be removed';
  }
}

/** The output of an image that ends because Google refuses the CONTAINER_CONFIG (docs/facts.md, Start and run). */
const REFUSED = /googletagmanager\.com\/server\.js\b.*\b(4\d\d)\b/;

/** The image can't read the CONTAINER_CONFIG at all (docs/facts.md, Container configuration). */
const UNREADABLE = /\bcontainer config\b/i;

const AGAIN = 'copy the one that Tag Manager shows now into the manifest';

/** The fault of its CONTAINER_CONFIG that a container's output reports; `undefined`: none. */
function faultOfConfig(output: readonly string[]): string | undefined {
  // The time that the expressions take grows faster than the length of a line.
  const lines = output.map((line) => line.slice(0, LONGEST_READ));
  const status = lines.map((line) => REFUSED.exec(line)?.[1]).find((found) => found !== undefined);
  if (status !== undefined) return `Google refuses its CONTAINER_CONFIG (status ${status}): ${AGAIN}`;
  if (!lines.some((line) => UNREADABLE.test(line))) return undefined;
  return `its CONTAINER_CONFIG can’t be read: ${AGAIN}, completely`;
}
