import { withinTime } from '../base/time-limit.ts';
import type { PartCheck } from '../report/report.ts';

/** Milliseconds that a part has to answer. */
export const PART_TIMEOUT_MS = 3_000;

interface PartQuestion {
  /** Resolves to the detail of a passed check. Throws an error whose message is the detail of a failed check. */
  ask(signal: AbortSignal): Promise<string>;
  readonly fix: string;
  readonly timeoutMs?: number;
  /** What an error of `ask` means where that isn't a failure with `fix`; `null`: it is. */
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
