import { join } from 'node:path';
import { z } from 'zod';
import { writeDurably } from '../../../base/durable.ts';
import { readJsonFile } from '../../../base/json-file.ts';
import { instanceDocument, siteDocument } from '../delivery/documents.ts';
import type { DeliveredSecrets } from './configuration.ts';
import type { SavedPeers } from './peers.ts';

const delivered = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('site'), document: siteDocument }),
  z.strictObject({ kind: z.literal('instance'), document: instanceDocument }),
  z.strictObject({ kind: z.literal('certificate'), cert: z.string(), key: z.string() }),
]);
const deliveriesFile = z.array(z.tuple([z.string(), delivered]));
const peersFile = z.record(
  z.string(),
  z.array(z.strictObject({ address: z.ipv4(), port: z.int().min(1).max(65_535) })),
);

/**
 * The last known deliveries and peers, on the gateway's disk, to serve after a restart while the API server is away.
 */
export class Saved {
  readonly #deliveries: string;
  readonly #peers: string;
  #written = '';

  constructor(directory: string) {
    this.#deliveries = join(directory, 'delivered.json');
    this.#peers = join(directory, 'peers.json');
  }

  /** Empty if nothing was saved, or if the file can't be read: the API server still has all. */
  async deliveries(): Promise<DeliveredSecrets> {
    return new Map(await readJsonFile(this.#deliveries, deliveriesFile).catch(() => []));
  }

  async saveDeliveries(deliveries: DeliveredSecrets): Promise<void> {
    await writeDurably(this.#deliveries, JSON.stringify([...deliveries]));
  }

  /** Empty in the same cases as `deliveries`. */
  async peers(): Promise<SavedPeers> {
    return await readJsonFile(this.#peers, peersFile).catch(() => ({}));
  }

  /** Writes them only if they have changed. */
  async savePeers(peers: SavedPeers): Promise<void> {
    const text = JSON.stringify(peers);
    if (text === this.#written) return;
    await writeDurably(this.#peers, text);
    this.#written = text;
  }
}
