import { withinTime } from '../../base/time-limit.ts';
import type { PartCheck } from './report.ts';
import type { PartName } from './runbooks.ts';

/** The time limit of a part, milliseconds. */
export const PART_TIMEOUT_MS = 3_000;

interface PartQuestion {
  /** Resolves to the detail of a passed check. Throws an error whose message is the detail of a failed check. */
  ask(signal: AbortSignal): Promise<string>;
  /** One of the fixes of the check's runbook. */
  readonly fix: string;
  readonly timeoutMs?: number;
  /** The result of the check for an error of `ask` that is none of those below. Default: it has failed, with `fix`. */
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
export async function checkPart(
  name: PartName,
  { ask, fix, timeoutMs = PART_TIMEOUT_MS, explain }: PartQuestion,
): Promise<PartCheck> {
  try {
    return { name, status: 'passed', detail: await withinTime(timeoutMs, ask), fix: null };
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    if (error instanceof NotChecked) return skippedPart(name, detail);
    if (error instanceof PartFault) return { name, status: 'failed', detail, fix: error.fix };
    return { name, ...(explain?.(error) ?? { status: 'failed', detail, fix }) };
  }
}

/** A check that could not be made. */
export function skippedPart(name: PartName, detail: string): PartCheck {
  return { name, status: 'skipped', detail, fix: null };
}
