import { z } from 'zod';
import { writeDurably } from '../../base/durable.ts';
import { readSaved } from '../../base/json-file.ts';
import { limit } from '../../base/limit.ts';
import { budgetSchema } from './budget.ts';

const failure = z.object({
  /** How many orders failed in a row. */
  count: z.int().min(1),
  message: z.string(),
  retryAt: z.number(),
});
export type OrderFailure = z.output<typeof failure>;

const ledgerSchema = z.object({
  version: z.literal(1),
  budget: budgetSchema,
  failures: z.record(z.string(), failure),
});
export type LedgerState = z.output<typeof ledgerSchema>;

/**
 * The order budget and the failed orders on disk, so that a daemon that restarts repeatedly doesn't order repeatedly. A
 * missing or damaged file counts as empty, one of a newer version is an error. Times are milliseconds since the epoch.
 */
export class Ledger {
  readonly #path: string;
  readonly #exclusive = limit(1);

  constructor(path: string) {
    this.#path = path;
  }

  async read(): Promise<LedgerState | null> {
    return await readSaved(this.#path, ledgerSchema);
  }

  /** Resolves when the state is on disk. Writes are done one after the other. */
  async write(state: LedgerState): Promise<void> {
    const text = JSON.stringify(state);
    await this.#exclusive(() => writeDurably(this.#path, text));
  }
}
