import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { FieldError } from '../../base/http/problem.ts';
import { limit } from '../../base/limit.ts';
import { siblingUrl } from '../../base/runtime/sibling.ts';
import { ManagementProblem } from '../http/errors.ts';
import type { CheckedSite } from './container-export.ts';
import type { PointVerdict } from './items.ts';

export interface ExportJob {
  readonly text: string;
  readonly site: CheckedSite;
}

/** `errors: null`: the text is no JSON. */
export type ExportAnswer =
  | { readonly verdicts: PointVerdict[] }
  | { readonly errors: readonly FieldError[] | null };

const MAX_HEAP_MB = 256;
/** One after another: exports are rare, and each takes a core for up to a second. */
const limited = limit(1);

/**
 * Parses, validates and judges an export in another thread: on the event loop, one of some megabytes would delay all other
 * requests. Throws `invalid_request`.
 */
export async function judgeInThread(job: ExportJob): Promise<PointVerdict[]> {
  const answer = await limited(() => answerOf(job));
  if ('verdicts' in answer) return answer.verdicts;
  throw new ManagementProblem(
    'invalid_request',
    answer.errors === null ? {} : { errors: [...answer.errors] },
  );
}

async function answerOf(job: ExportJob): Promise<ExportAnswer> {
  const thread = new Worker(siblingUrl('./export-thread', import.meta.url), {
    workerData: job,
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
  });
  try {
    const [answer] = await once(thread, 'message'); // rejects at the event `error`
    return answer;
  } finally {
    await thread.terminate();
  }
}
