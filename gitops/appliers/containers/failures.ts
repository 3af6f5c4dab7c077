import { GivenUpError, RetryableError, TerminalError } from '../../base/errors.ts';
import type { ContainerSpec } from '../../manifest/containers.ts';
import { redact } from './redact.ts';

/** A spec that has failed this often while starting is taken to be wrong itself. */
const FAILURES_UNTIL_TERMINAL = 3;
const SHOWN_LINES = 5;
const LONGEST_LINE = 300;

/** How one went down that was being brought up: what happened, and what it wrote last. */
export interface StartFailure {
  readonly name: string;
  readonly spec: ContainerSpec;
  /** `it died (exit code 1)`, say. */
  readonly what: string;
  readonly lines: readonly string[];
}

/**
 * Counts how often each spec failed to come up, and makes of each failure the error that says what to do next: try
 * again; look at it, since it fails every time; or leave it, once it was tried `giveUpAfter` times. What has been
 * healthy before is never given up: its trouble is the world's (the network, Google), and passes.
 */
export class Failures {
  readonly #giveUpAfter: number;
  readonly #counts = new Map<string, number>();
  readonly #proven = new Set<string>();

  constructor(giveUpAfter: number) {
    this.#giveUpAfter = giveUpAfter;
  }

  /** Keeps what this hash stands for from being given up. */
  prove(hash: string): void {
    this.#proven.add(hash);
    this.#counts.delete(hash);
  }

  count(hash: string, { name, spec, what, lines }: StartFailure): RetryableError | TerminalError {
    const times = (this.#counts.get(hash) ?? 0) + 1;
    this.#counts.set(hash, times);
    const shown = lines.slice(-SHOWN_LINES).map((line) => redact(spec.config, line).slice(0, LONGEST_LINE));
    const wrote = shown.length === 0 ? 'it wrote nothing' : `it wrote: ${shown.join(' | ')}`;
    const message = [`${name} doesn’t start: ${what}`, wrote, ...explain(lines)].join('; ');
    if (times < FAILURES_UNTIL_TERMINAL) return new RetryableError(message);
    const often = `${message}; ${times} times in a row`;
    if (times < this.#giveUpAfter || this.#proven.has(hash)) return new TerminalError(often);
    return new GivenUpError(
      `${often}, so it is left alone until its manifest changes or somebody runs tagyard apply`,
    );
  }
}

/** Google's answer to the CONTAINER_CONFIG; the image ends with it (facts.md, Startup and run). */
const REFUSED = /googletagmanager\.com\/server\.js\b.*\b(4\d\d)\b/;

function explain(lines: readonly string[]): string[] {
  const status = lines.map((line) => REFUSED.exec(line)?.[1]).find((found) => found !== undefined);
  if (status === undefined) return [];
  return [`Google refuses its CONTAINER_CONFIG (status ${status}): take the one that Tag Manager shows now`];
}
