import { z } from 'zod';
import { writeDurably } from '../../../base/durable.ts';
import { readJsonFile } from '../../../base/json-file.ts';

const known = z.object({ version: z.literal(1), clients: z.record(z.string(), z.uuid()) });

/**
 * The ids of the clients that imports of a file have created; keys: API and name. They are kept in a file beside it,
 * because the names of clients are not unique: without the ids, a repeated import could not find them.
 */
export class KnownClients {
  readonly #path: string;
  readonly #url: string;
  #ids: Readonly<Record<string, string>>;

  private constructor(path: string, url: string, ids: Readonly<Record<string, string>>) {
    this.#path = path;
    this.#url = url;
    this.#ids = ids;
  }

  static async read(file: string, url: string): Promise<KnownClients> {
    const path = `${file}.clients.json`;
    const { clients } = await readJsonFile(path, known).catch((error: unknown) => {
      const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
      if (!isMissing) throw error;
      return { clients: {} };
    });
    return new KnownClients(path, url, clients);
  }

  idOf(name: string): string | null {
    return this.#ids[this.#keyOf(name)] ?? null;
  }

  async add(name: string, id: string): Promise<void> {
    this.#ids = { ...this.#ids, [this.#keyOf(name)]: id };
    await writeDurably(this.#path, `${JSON.stringify({ version: 1, clients: this.#ids }, null, 2)}\n`);
  }

  #keyOf(name: string): string {
    return `${this.#url} ${name}`;
  }
}
