import { GivenUpError, RetryableError, TerminalError } from '../../base/errors.ts';
import type { ContainerSpec } from '../../manifest/containers.ts';
import { redact } from './redact.ts';

/** After so many failed starts the spec itself is assumed to be wrong. */
const FAILURES_UNTIL_TERMINAL = 3;
/** The image starts, but then ends or is unhealthy. The usual cause is the site's CONTAINER_CONFIG. */
const OF_SITE = { isOfSite: true } as const;
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
 * Counts the failed starts of each spec and maps each one to an error: retryable at first, terminal once it repeats,
 * given up after `giveUpAfter`. A spec that was healthy before is never given up: the fault is outside it (the network,
 * Google) and temporary.
 */
export class Failures {
  readonly #giveUpAfter: number;
  readonly #counts = new Map<string, number>();
  readonly #proven = new Set<string>();

  constructor(giveUpAfter: number) {
    this.#giveUpAfter = giveUpAfter;
  }

  /** The resource of this hash has been healthy. */
  prove(hash: string): void {
    this.#proven.add(hash);
    this.#counts.delete(hash);
  }

  count(hash: string, { name, spec, what, lines }: StartFailure): RetryableError | TerminalError {
    const times = (this.#counts.get(hash) ?? 0) + 1;
    this.#counts.set(hash, times);
    const shown = lines.slice(-SHOWN_LINES).map((line) => redact(spec, line).slice(0, LONGEST_LINE));
    const output = shown.length === 0 ? 'it wrote nothing' : `it wrote: ${shown.join(' | ')}`;
    const message = [`${name} doesn’t start: ${what}`, output, ...explain(lines)].join('; ');
    if (times < FAILURES_UNTIL_TERMINAL) return new RetryableError(message, OF_SITE);
    const repeated = `${message}; ${times} times in a row`;
    if (times < this.#giveUpAfter || this.#proven.has(hash)) return new TerminalError(repeated, OF_SITE);
    return new GivenUpError(
      `${repeated}. It is not started again until its manifest changes or you run tagyard apply`,
      OF_SITE,
    );
  }
}

/** Google's answer to the CONTAINER_CONFIG, which ends the image (docs/facts.md, Startup and run). */
const REFUSED = /googletagmanager\.com\/server\.js\b.*\b(4\d\d)\b/;

function explain(lines: readonly string[]): string[] {
  const status = lines.map((line) => REFUSED.exec(line)?.[1]).find((found) => found !== undefined);
  if (status === undefined) return [];
  return [
    `Google refuses its CONTAINER_CONFIG (status ${status}): copy the one that Tag Manager shows now into the manifest`,
  ];
}
