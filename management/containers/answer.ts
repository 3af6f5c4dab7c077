import type { Context } from '../context/context.ts';
import { ProblemError } from '../http/errors.ts';
import { findKey, type IdempotencyKey, storeAnswer } from './idempotency.repository.ts';
import { UNSETTLED } from '../lifecycle/steps.ts';
import { findContainer } from '../records/containers.repository.ts';
import type { ContainerView } from './containers.schema.ts';
import { presentContainer } from '../view/present.ts';

/** What a creation came to, as it is kept for repeated requests. */
export type Answer =
  | { readonly container: ContainerView }
  | { readonly failed: string; readonly detail: string };

/** What the first request with the key was answered; `null`: there was none. */
export async function earlierAnswer(context: Context, key: IdempotencyKey): Promise<Answer | null> {
  const row = await findKey(context.db, key);
  if (row === undefined) return null;
  if (row.body_hash !== key.bodyHash) throw new ProblemError('idempotency_key_reused');
  // Written by `storeAnswer` in the shape of Answer.
  if (row.answer !== null) return row.answer as Answer;
  // No answer: it is still being made, or the process was killed and the operation went on without the request.
  const container = await findContainer(context.db, row.container_id);
  const { operation } = container ?? {};
  if (operation?.status === 'running' && UNSETTLED.includes(operation.step)) {
    throw new ProblemError('request_in_progress');
  }
  const answer = await answerNow(context, row.container_id);
  await storeAnswer(context.db, key, answer);
  return answer;
}

/** What the record says now, once the part that the request waits for is over. */
export async function answerNow({ db, settings }: Context, id: string): Promise<Answer> {
  const row = await findContainer(db, id);
  if (row === undefined) throw new Error(`container ${id} has no record`);
  const given = row.operation?.kind === 'provision' && row.operation.step === 'withdraw';
  if (given) return { failed: id, detail: row.status_detail ?? 'the sites repository can’t be reached' };
  return { container: presentContainer(row, settings) };
}

/** The container, or the problem thrown that stands for its failure. */
export function reply(answer: Answer): ContainerView {
  if ('container' in answer) return answer.container;
  throw new ProblemError('provisioning_failed', answer.detail, { container: answer.failed });
}
