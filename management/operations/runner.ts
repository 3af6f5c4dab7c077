import type { Context } from '../context/context.ts';
import { findRunning, moveOperation, type OperationRow, runningOperations } from '../records/operations.repository.ts';
import type { StepFunction, StepOutcome } from './outcome.ts';
import { type SagaStep, UNSETTLED } from '../lifecycle/steps.ts';

/** How often to look when nothing is known to run: another process may have left something. */
const IDLE_MS = 5_000;
/** An operation is looked at more and more seldom: after a tenth of its age, but at least this often. */
const SLOWEST_MS = 10_000;

/**
 * Takes operations through their steps: by itself in the background, and at once for a request that waits. All state
 * is in the database, so that whoever comes next goes on where a killed process stopped.
 */
export class Runner {
  readonly #context: Pick<Context, 'db' | 'log' | 'settings'>;
  readonly #steps: Readonly<Record<SagaStep, StepFunction>>;
  readonly #inHand = new Map<string, Promise<void>>();
  /** When an operation was looked at last, on the clock that never jumps. */
  readonly #looked = new Map<string, number>();
  #wake: () => void = () => undefined;

  constructor(
    context: Pick<Context, 'db' | 'log' | 'settings'>,
    steps: Readonly<Record<SagaStep, StepFunction>>,
  ) {
    this.#context = context;
    this.#steps = steps;
  }

  /** Takes an operation that was just begun through the steps that a request waits for. */
  async settle(operation: OperationRow): Promise<void> {
    await this.#takeUp(operation.id, async () => {
      await this.#advance(operation, ({ step }) => !UNSETTLED.includes(step));
    });
  }

  /** There is a new operation. */
  wake(): void {
    this.#wake();
  }

  /** Until the signal; resolves when no step is in hand any more. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, settings } = this.#context;
    signal.addEventListener('abort', () => this.#wake(), { once: true });
    while (!signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      let running = false;
      try {
        running = await this.#look();
      } catch (err) {
        log.error({ err }, 'the operations could not be read');
      }
      const timer = setTimeout(resolve, running ? settings.followMs : IDLE_MS);
      if (!signal.aborted) await promise;
      clearTimeout(timer);
    }
    await Promise.allSettled(this.#inHand.values());
  }

  /** Takes up each operation that is due; a slow one holds up nobody. Answers whether there are any. */
  async #look(): Promise<boolean> {
    const { db, settings } = this.#context;
    const operations = await runningOperations(db);
    for (const { id, created_at } of operations) {
      const pause = Math.min(
        SLOWEST_MS,
        Math.max(settings.followMs, (Date.now() - created_at.getTime()) / 10),
      );
      const looked = this.#looked.get(id);
      // A timer may fire a little early.
      if (this.#inHand.has(id) || (looked !== undefined && performance.now() - looked < pause * 0.9))
        continue;
      this.#looked.set(id, performance.now());
      this.#takeUp(id, () => this.#resume(id)).catch((err: unknown) => this.#report(id, err));
    }
    const ids = new Set(operations.map(({ id }) => id));
    for (const id of this.#looked.keys()) if (!ids.has(id)) this.#looked.delete(id);
    return operations.length > 0;
  }

  /** Callers that come while somebody has it in hand share the end of that. */
  async #takeUp(id: string, work: () => Promise<void>): Promise<void> {
    const running = this.#inHand.get(id);
    if (running !== undefined) return await running;
    const turn = work().finally(() => this.#inHand.delete(id));
    this.#inHand.set(id, turn);
    await turn;
  }

  async #resume(id: string): Promise<void> {
    const operation = await findRunning(this.#context.db, id);
    if (operation !== undefined) await this.#advance(operation, () => false);
  }

  /** Goes as far as it goes now, and no further than to a step that `isEnough`. */
  async #advance(from: OperationRow, isEnough: (operation: OperationRow) => boolean): Promise<void> {
    for (let operation = from; ; ) {
      const outcome = await this.#steps[operation.step](operation);
      if (outcome === 'wait') return;
      const moved = await this.#move(operation, outcome);
      const { id, container_id: container, kind, step } = operation;
      this.#context.log.info(
        { operation: id, container, kind, from: step, to: outcome.to },
        'operation moved',
      );
      // Where it could not be moved, somebody else has gone on with it, or ended it.
      const next = moved ?? (await findRunning(this.#context.db, id));
      if (next?.status !== 'running' || isEnough(next)) return;
      operation = next;
    }
  }

  async #move(
    operation: OperationRow,
    outcome: Exclude<StepOutcome, 'wait'>,
  ): Promise<OperationRow | undefined> {
    const { to, effect, reason, detail, revision, provisionerOperation } = outcome;
    const values = {
      ...(to === 'succeeded' || to === 'failed' ? { status: to, manifest: null } : { step: to }),
      ...(reason === undefined ? {} : { reason }),
      ...(detail === undefined ? {} : { detail }),
      ...(provisionerOperation === undefined ? {} : { provisioner_operation: provisionerOperation }),
      revision,
    };
    if (effect === undefined) return await moveOperation(this.#context.db, operation, values);
    return await this.#context.db.transaction().execute(async (trx) => {
      const moved = await moveOperation(trx, operation, values);
      if (moved !== undefined) await effect(trx);
      return moved;
    });
  }

  #report(id: string, err: unknown): void {
    this.#context.log.error({ err, operation: id }, 'a step failed unexpectedly and is tried again');
  }
}
