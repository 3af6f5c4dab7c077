import { withinTime } from '../../base/time-limit.ts';
import type { PartCheck } from '../report/report.ts';

/** The time limit of a part, milliseconds. */
export const PART_TIMEOUT_MS = 3_000;

interface PartQuestion {
  /** Resolves to the detail of a passed check. Throws an error whose message is the detail of a failed check. */
  ask(signal: AbortSignal): Promise<string>;
  readonly fix: string;
  readonly timeoutMs?: number;
  /** The result of the check for an error of `ask` that is no `PartFault`. Default: it has failed, with `fix`. */
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

/** Asks one part within a time limit: what hangs has failed. Never throws. */
export async function checkPart(
  name: string,
  { ask, fix, timeoutMs = PART_TIMEOUT_MS, explain }: PartQuestion,
): Promise<PartCheck> {
  try {
    return { name, status: 'passed', detail: await withinTime(timeoutMs, ask), fix: null };
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    if (error instanceof PartFault) return { name, status: 'failed', detail, fix: error.fix };
    return { name, ...(explain?.(error) ?? { status: 'failed', detail, fix }) };
  }
}
