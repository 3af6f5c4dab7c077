import type { Database } from '../db/database.ts';
import { visibleClients } from '../records/memberships.repository.ts';
import type { Subscription } from './subscription.ts';

/** The streams of one token, and the clients that its caller may read. */
export class Audience {
  readonly streams = new Set<Subscription>();
  readonly authorization: string | undefined;
  readonly subject: string;
  readonly #db: Database;
  /** `null`: not read yet. */
  #clients: ReadonlySet<string> | null = null;
  #reading: Promise<void> = Promise.resolve();

  constructor(db: Database, { subject, authorization }: Pick<Audience, 'subject' | 'authorization'>) {
    this.#db = db;
    this.subject = subject;
    this.authorization = authorization;
  }

  /** `null`: unknown yet. */
  sees(client: string): boolean | null {
    return this.#clients?.has(client) ?? null;
  }

  /**
   * Reads the memberships again. Ends streams of a client that the caller may no longer read. The other streams report
   * nothing of it any more.
   */
  async refresh(): Promise<void> {
    // One after another: an older answer must not replace a newer one.
    this.#reading = this.#reading.catch(() => undefined).then(() => this.#read());
    await this.#reading;
  }

  async #read(): Promise<void> {
    const rows = await visibleClients(this.#db, { subject: this.subject }).execute();
    const clients = new Set(rows.map(({ client_id }) => client_id));
    this.#clients = clients;
    for (const stream of this.streams) {
      const { client } = stream.of;
      if (client !== null && !clients.has(client)) stream.end();
      else stream.keep(clients);
    }
  }
}
