import type { Context } from '../context/context.ts';
import { TriggeredLoop } from '../context/repeat.ts';
import { isUnsettled, type SagaStep } from '../lifecycle/steps.ts';
import {
  findRunning,
  moveOperation,
  type OperationRow,
  runningOperations,
} from '../records/operations.repository.ts';
import type { StepFunction, StepOutcome } from './outcome.ts';
import { isPollDue } from './poll.ts';

/** Interval of the checks while no operation runs: another process may have left one unfinished. */
const IDLE_MS = 5_000;

type Parts = Pick<Context, 'db' | 'log' | 'settings' | 'clock'>;

/**
 * Runs operations through their steps: in the background, and at once for a request that waits. All state is in the
 * database, so that another process can continue after a kill.
 */
export class Runner {
  readonly #parts: Parts;
  readonly #steps: Readonly<Record<SagaStep, StepFunction>>;
  readonly #active = new Map<string, Promise<void>>();
  /** When each operation was polled last, by `clock.now()`. */
  readonly #polledAt = new Map<string, number>();
  readonly #loop: TriggeredLoop;

  constructor(parts: Parts, steps: Readonly<Record<SagaStep, StepFunction>>) {
    this.#parts = parts;
    this.#loop = new TriggeredLoop(parts.clock);
    this.#steps = steps;
  }

  /** Runs an operation that has just begun, through the steps that a request waits for. */
  async settle(operation: OperationRow): Promise<void> {
    await this.#runOnce(operation.id, async () => {
      await this.#advance(operation, ({ step }) => !isUnsettled(step));
    });
  }

  /** Announces a new operation, so that the next poll starts now. */
  trigger(): void {
    this.#loop.trigger();
  }

  /** Runs until the signal. Resolves when no step is running any more. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, settings } = this.#parts;
    await this.#loop.run(signal, async () => {
      const isAnyRunning = await this.#poll().catch((err: unknown) => {
        log.error({ err }, 'the operations could not be read');
        return false;
      });
      return isAnyRunning ? settings.followMs : IDLE_MS;
    });
    await Promise.allSettled(this.#active.values());
  }

  /** Resumes each operation that is due, all concurrently. Resolves to whether there are any, due or not. */
  async #poll(): Promise<boolean> {
    const { db, settings, clock } = this.#parts;
    const operations = await runningOperations(db);
    for (const { id, created_at } of operations) {
      const polledAt = this.#polledAt.get(id);
      const sinceMs = polledAt === undefined ? null : clock.now() - polledAt;
      const ageMs = clock.date().getTime() - created_at.getTime();
      if (this.#active.has(id) || !isPollDue(sinceMs, ageMs, settings.followMs)) continue;
      this.#polledAt.set(id, clock.now());
      this.#runOnce(id, () => this.#resume(id)).catch((err: unknown) => this.#report(id, err));
    }
    const ids = new Set(operations.map(({ id }) => id));
    for (const id of this.#polledAt.keys()) if (!ids.has(id)) this.#polledAt.delete(id);
    return operations.length > 0;
  }

  /** Runs one piece of work of an operation at a time. Concurrent callers wait for the one that runs. */
  async #runOnce(id: string, work: () => Promise<void>): Promise<void> {
    const active = this.#active.get(id);
    if (active !== undefined) return await active;
    const run = work().finally(() => this.#active.delete(id));
    this.#active.set(id, run);
    await run;
  }

  async #resume(id: string): Promise<void> {
    const operation = await findRunning(this.#parts.db, id);
    if (operation !== undefined) await this.#advance(operation, () => false);
  }

  /** Runs step after step until one must wait, the operation ends, or `isEnough`. */
  async #advance(from: OperationRow, isEnough: (operation: OperationRow) => boolean): Promise<void> {
    for (let operation = from; ; ) {
      const outcome = await this.#steps[operation.step](operation);
      if (outcome === 'wait') return;
      const moved = await this.#move(operation, outcome);
      const { id, container_id: container, kind, step } = operation;
      if (moved !== undefined) {
        this.#parts.log.info(
          { operation: id, container, kind, from: step, to: outcome.to },
          'operation moved',
        );
      }
      // Where the move was refused, another process has moved the operation, or it has ended.
      const next = moved ?? (await findRunning(this.#parts.db, id));
      if (next?.status !== 'running' || isEnough(next)) return;
      operation = next;
    }
  }

  async #move(
    operation: OperationRow,
    outcome: Exclude<StepOutcome, 'wait'>,
  ): Promise<OperationRow | undefined> {
    const { to, effect, reason, detail, revision, provisionerOperation, hostSteps } = outcome;
    const values = {
      ...(to === 'succeeded' || to === 'failed' ? { status: to, manifest: null } : { step: to }),
      ...(reason === undefined ? {} : { reason }),
      ...(detail === undefined ? {} : { detail }),
      ...(provisionerOperation === undefined ? {} : { provisioner_operation: provisionerOperation }),
      ...(hostSteps === undefined ? {} : { host_steps: JSON.stringify(hostSteps) }),
      revision,
    };
    if (effect === undefined) return await moveOperation(this.#parts.db, operation, values);
    return await this.#parts.db.transaction().execute(async (trx) => {
      const moved = await moveOperation(trx, operation, values);
      if (moved !== undefined) await effect(trx);
      return moved;
    });
  }

  #report(id: string, err: unknown): void {
    this.#parts.log.error({ err, operation: id }, 'a step failed unexpectedly; it will be tried again');
  }
}
