import { withinTime } from '../base/time-limit.ts';
import type { PartCheck } from '../report/report.ts';

/** The time limit of a part, milliseconds. */
export const PART_TIMEOUT_MS = 3_000;

interface PartQuestion {
  /** Resolves to the detail of a passed check. Throws an error whose message is the detail of a failed check. */
  ask(signal: AbortSignal): Promise<string>;
  readonly fix: string;
  readonly timeoutMs?: number;
  /** Returns the result of the check for an error of `ask`; `null`: the check has failed, with `fix` as the remedy. */
  explain?(error: unknown): Omit<PartCheck, 'name'> | null;
}

/** Asks one part within a time limit: what hangs has failed. Never throws. */
export async function checkPart(
  name: string,
  { ask, fix, timeoutMs = PART_TIMEOUT_MS, explain = () => null }: PartQuestion,
): Promise<PartCheck> {
  try {
    return { name, status: 'passed', detail: await withinTime(timeoutMs, ask), fix: null };
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    const failed: Omit<PartCheck, 'name'> = { status: 'failed', detail, fix };
    return { name, ...(explain(error) ?? failed) };
  }
}
