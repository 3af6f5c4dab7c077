import type { components, paths } from '../../../../../base/client/index.ts';
import { api } from '../../data/api.ts';
import type { ChangedValue } from '../../parts/changes.tsx';

type BulkItem = paths['/bulk']['post']['requestBody']['content']['application/json']['items'][number];

/** What is done with each of the chosen containers. */
export interface BulkAction {
  readonly key: string;
  readonly name: string;
  /** The first words of the button that does it; the number follows. */
  readonly button: string;
  readonly verb: BulkItem['verb'];
  readonly body?: BulkItem['body'];
  /** One click can't undo the action: to confirm it, the person must type the number of containers. */
  readonly isDanger?: boolean;
  /** It is done even where no value changes, such as a verification. */
  readonly isAlways?: boolean;
}

/** What became of one container, or what the plan says of it. */
export interface BulkResult {
  readonly id: string;
  readonly done: boolean;
  readonly changes: readonly ChangedValue[];
  /** Names the plan of a dry run. */
  readonly checksum?: string | undefined;
  /** Why it was refused, with the error code; `null`: it wasn't. */
  readonly problem: { readonly text: string; readonly code: string | null } | null;
}

/** The most containers in one request. */
const AT_ONCE = 100;

/**
 * Sends the action for each container: a dry run or, with its results as `plan`, what they show. `onDone` gets the
 * number of those that were answered so far.
 */
export async function sendBulk(
  { verb, body }: BulkAction,
  ids: readonly string[],
  { plan, onDone }: { readonly plan: readonly BulkResult[] | null; onDone(number: number): void },
): Promise<BulkResult[]> {
  const plans = new Map(plan?.map(({ id, checksum }) => [id, checksum]));
  const outcomes: BulkResult[] = [];
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const items = ids.slice(at, at + AT_ONCE).map((id): BulkItem => {
      const named = plans.get(id);
      return {
        ...{ verb, id },
        ...(body === undefined ? {} : { body }),
        ...(named === undefined ? {} : { plan: named }),
      };
    });
    const { data } = await api.post('/bulk', {
      params: { query: plan === null ? { dryRun: '1' } : {} },
      body: { items },
    });
    outcomes.push(...data.items.map(outcomeOf));
    onDone(outcomes.length);
  }
  return outcomes;
}

function outcomeOf({ id, done, status, answer }: components['schemas']['BulkOutcome']): BulkResult {
  // What the endpoint of the verb answers: a problem, a plan or the container.
  const { plan, detail, title, code } = (answer ?? {}) as {
    plan?: { changes?: readonly ChangedValue[]; checksum?: string };
    detail?: string;
    title?: string;
    code?: string;
  };
  const problem = done
    ? null
    : { text: detail ?? title ?? `The API answered ${status}.`, code: code ?? null };
  return { id, done, changes: plan?.changes ?? [], checksum: plan?.checksum, problem };
}
