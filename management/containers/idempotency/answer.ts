import { containerResources } from '../../../sites/manifest/resources/schema.ts';
import type { Context } from '../../context/context.ts';
import { ManagementProblem } from '../../http/errors.ts';
import { LIVE } from '../../lifecycle/status.ts';
import { isUnsettled } from '../../lifecycle/steps.ts';
import { type ContainerWithOperation, findContainer } from '../../records/containers.repository.ts';
import { findKey, type IdempotencyKey, storeAnswer } from '../../records/idempotency.repository.ts';
import type { ContainerView } from '../../view/container-view.ts';
import { presentContainer } from '../../view/present.ts';

type DomainView = ContainerView['domains'][number];
type NewMembers = Pick<ContainerView, 'client' | 'warnings' | 'protected' | 'resources' | 'serving' | 'tls'>;
/** As an older release may have stored it: without some members, and with domains without `sameOrigin`. */
type StoredView = Omit<ContainerView, keyof NewMembers | 'domains'> &
  Partial<NewMembers> & {
    readonly domains: readonly (Omit<DomainView, 'sameOrigin'> & Partial<Pick<DomainView, 'sameOrigin'>>)[];
  };

/** The outcome of a creation. It is stored to answer repeated requests. */
export type CreationAnswer =
  | { readonly container: StoredView }
  | { readonly failed: string; readonly detail: string };

type Recorded = Pick<ContainerWithOperation, 'status' | 'operation'>;

/** How to answer a request whose Idempotency-Key was used before. */
export function judgeRepeat(
  first: { readonly body_hash: string; readonly answer: unknown },
  bodyHash: string,
  container: Recorded | undefined,
): 'refuse_other_body' | 'refuse_in_progress' | 'repeat_stored' | 'answer_from_record' {
  if (first.body_hash !== bodyHash) return 'refuse_other_body';
  // The container of a failed creation may be live by now, because git has restored its site.
  const isOutdated = isFailure(first.answer) && container !== undefined && LIVE.includes(container.status);
  if (first.answer !== null && !isOutdated) return 'repeat_stored';
  // If no answer is stored, the first request is still running, or its process died and the operation continued.
  const operation = container?.operation;
  return operation?.status === 'running' && isUnsettled(operation.step)
    ? 'refuse_in_progress'
    : 'answer_from_record';
}

/** The answer to a repeated request; `null` if the key is new. Throws if the repetition is refused. */
export async function repeatedAnswer(context: Context, key: IdempotencyKey): Promise<CreationAnswer | null> {
  const first = await findKey(context.db, key);
  if (first === undefined) return null;
  const { container_id: id } = first;
  // The row is of another kind of creation, stored by a hash, `sha256:…`: this request's key is that same text.
  if (id === null) throw new ManagementProblem('idempotency_key_reused');
  const isFinal = first.answer !== null && !isFailure(first.answer);
  const container = isFinal ? undefined : await findContainer(context.db, id);
  switch (judgeRepeat(first, key.bodyHash, container)) {
    case 'refuse_other_body':
      throw new ManagementProblem('idempotency_key_reused');
    case 'refuse_in_progress':
      throw new ManagementProblem('request_in_progress');
    case 'repeat_stored':
      return first.answer as CreationAnswer; // written by `storeAnswer`
    case 'answer_from_record': {
      const answer = await recordedAnswer(context, id);
      await storeAnswer(context.db, key, answer);
      return answer;
    }
  }
}

/** Builds the answer from the container's record. The steps that the request waits for must be done. */
export async function recordedAnswer({ db, settings }: Context, id: string): Promise<CreationAnswer> {
  const row = await findContainer(db, id);
  if (row === undefined) throw new Error(`container ${id} has no record`);
  const isWithdrawn = row.operation?.kind === 'provision' && row.operation.step === 'withdraw';
  if (isWithdrawn) {
    return { failed: id, detail: row.status_detail ?? 'the sites repository can’t be reached' };
  }
  return { container: presentContainer(row, settings) };
}

function isFailure(answer: unknown): boolean {
  return typeof answer === 'object' && answer !== null && 'failed' in answer;
}

/** The created container. Throws `provisioning_failed` if the creation failed. */
export function createdContainer(answer: CreationAnswer): ContainerView {
  if ('container' in answer) {
    const {
      client = answer.container.clientId,
      warnings = [],
      protected: isProtected = false,
      serving = true,
      tls = 'files',
      resources,
      domains,
    } = answer.container;
    return {
      ...answer.container,
      client,
      warnings,
      protected: isProtected,
      serving,
      tls,
      resources: resources ?? containerResources.parse({}),
      domains: domains.map((domain) => ({ sameOrigin: null, ...domain })),
    };
  }
  throw new ManagementProblem('provisioning_failed', { detail: answer.detail, container: answer.failed });
}
