import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { writeDurably } from '../base/durable.ts';
import { budgetSchema } from './budget.ts';

const failure = z.object({
  /** In a row. */
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
 * What was ordered and what failed, on disk: a daemon that starts again and again must not order again and again. Lost
 * or damaged, it is begun anew. Times are milliseconds since 1970.
 */
export class Ledger {
  readonly #path: string;
  #writing: Promise<void> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  async read(): Promise<LedgerState | null> {
    try {
      return ledgerSchema.parse(JSON.parse(await readFile(this.#path, 'utf8')));
    } catch {
      return null;
    }
  }

  /** One write after the other; resolves when this one is on disk. */
  async write(state: LedgerState): Promise<void> {
    const text = JSON.stringify(state);
    const written = this.#writing.then(() => writeDurably(this.#path, text));
    this.#writing = written.catch(() => undefined);
    await written;
  }
}
