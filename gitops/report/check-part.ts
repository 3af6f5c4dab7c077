import { withinTime } from '../../base/time-limit.ts';
import type { PartCheck } from './report.ts';
import { type PartName, RUNBOOKS } from './runbooks.ts';

/** The time limit of a part, milliseconds. */
export const PART_TIMEOUT_MS = 3_000;

type FixOf<Name extends PartName> = keyof (typeof RUNBOOKS)[Name]['fixes'];

interface PartQuestion<Name extends PartName> {
  /**
   * Resolves to the detail of a passed check. Throws an error whose message is the detail of a failed check; `fault` makes
   * one with another fix.
   */
  ask(signal: AbortSignal, fault: (message: string, fix: FixOf<Name>) => PartFault): Promise<string>;
  /** The fix of other errors, one of the runbook's. */
  readonly fix: FixOf<Name>;
  /** What other errors are about, a setting with its value; their messages follow it. */
  readonly subject?: string;
  readonly timeoutMs?: number;
  /** The result of the check for other errors. Default: it has failed, with `fix`. */
  explain?(error: unknown): Omit<PartCheck, 'name'>;
}

/** What was asked has answered, and something of it is wrong. */
export class PartFault extends Error {
  override readonly name = 'PartFault';
  readonly fix: string;
  constructor(message: string, fix: string) {
    super(message);
    this.fix = fix;
  }
}

/** Nothing is known of what was asked. */
export class NotChecked extends Error {
  override readonly name = 'NotChecked';
}

/** Asks one part within a time limit: what hangs has failed. Never throws. */
export async function checkPart<Name extends PartName>(
  name: Name,
  { ask, fix, subject, timeoutMs = PART_TIMEOUT_MS, explain }: PartQuestion<Name>,
): Promise<PartCheck> {
  const fixes = RUNBOOKS[name].fixes as Readonly<Record<FixOf<Name>, string>>; // the type of one name's fixes
  const fault = (message: string, kind: FixOf<Name>) => new PartFault(message, fixes[kind]);
  try {
    const detail = await withinTime(timeoutMs, async (signal) => await ask(signal, fault));
    return { name, status: 'passed', detail, fix: null };
  } catch (error) {
    const reason = textOfError(error);
    if (error instanceof NotChecked) return skippedPart(name, reason);
    if (error instanceof PartFault) return { name, status: 'failed', detail: reason, fix: error.fix };
    const detail = subject === undefined ? reason : `${subject}: ${reason}`;
    return { name, ...(explain?.(error) ?? { status: 'failed', detail, fix: fixes[fix] }) };
  }
}

/** A check that could not be made. */
export function skippedPart(name: PartName, detail: string): PartCheck {
  return { name, status: 'skipped', detail, fix: null };
}

/** An error's message, with that of its cause: `fetch` says why it failed only there. */
export function textOfError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
