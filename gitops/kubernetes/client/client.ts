import { type Clock, systemClock } from '../../../base/clock.ts';
import { addressOf, objectLabel, objectPath } from './address.ts';
import { type ClusterAccess, readClusterConfig } from './config.ts';
import type { Applied, ApplyOptions, KubernetesClient, ObjectSelection, Watched } from './contract.ts';
import { faultReason } from './errors.ts';
import type { KubernetesObject, ObjectAddress } from './kinds.ts';
import { objectOf } from './object-text.ts';
import { listPaged, METADATA } from './paging.ts';
import { type Call, Transport } from './transport.ts';
import { WatchedCopy } from './watched.ts';

/** The same as in client-go. */
const PAGE_SIZE = 500;

interface ClientOptions {
  /** How many objects a page of a listing has. Default: 500. */
  readonly pageSize?: number;
  readonly clock?: Clock;
  readonly random?: () => number;
}

/** Throws `TerminalError` if the configuration can't be used. Makes no call to the API server. */
export async function openKubernetes(
  access: ClusterAccess,
  { pageSize = PAGE_SIZE, clock = systemClock, random = Math.random }: ClientOptions = {},
): Promise<KubernetesClient> {
  const transport = new Transport(await readClusterConfig(access), clock);
  return new ApiClient(transport, { pageSize, clock, random });
}

class ApiClient implements KubernetesClient {
  readonly #transport: Transport;
  readonly #options: Required<ClientOptions>;
  readonly #copies = new Set<WatchedCopy>();

  constructor(transport: Transport, options: Required<ClientOptions>) {
    this.#transport = transport;
    this.#options = options;
  }

  async apply(
    object: KubernetesObject,
    { manager, force, dryRun = false }: ApplyOptions,
    signal: AbortSignal,
  ): Promise<Applied> {
    const address = addressOf(object);
    const { body, warnings } = await this.#transport.call({
      method: 'PATCH',
      path: objectPath(address),
      query: {
        fieldManager: manager,
        force: String(force),
        fieldValidation: 'Strict',
        ...(dryRun && { dryRun: 'All' }),
      },
      // JSON is YAML.
      contentType: 'application/apply-patch+yaml',
      body: object,
      accept: METADATA,
      what: `apply ${objectLabel(address)}`,
      isRepeatable: true,
      signal,
    });
    return { object: objectOf(body, address), warnings };
  }

  patch(
    address: ObjectAddress & { readonly subresource?: string },
    patch: readonly object[],
    signal: AbortSignal,
  ): Promise<KubernetesObject | null> {
    const { subresource } = address;
    return this.#orNull(address, {
      method: 'PATCH',
      path: objectPath(address) + (subresource === undefined ? '' : `/${subresource}`),
      query: { fieldManager: 'tagyard', fieldValidation: 'Strict' },
      contentType: 'application/json-patch+json',
      body: patch,
      what: `patch ${objectLabel(address)}`,
      isRepeatable: false,
      signal,
    });
  }

  async delete(address: ObjectAddress, uid: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#transport.call({
        method: 'DELETE',
        path: objectPath(address),
        body: {
          apiVersion: 'v1',
          kind: 'DeleteOptions',
          preconditions: { uid },
          propagationPolicy: 'Background',
        },
        what: `delete ${objectLabel(address)}`,
        isRepeatable: true,
        signal,
      });
    } catch (error) {
      const reason = faultReason(error);
      if (reason !== 'absent' && reason !== 'changed') throw error;
    }
  }

  get(address: ObjectAddress, signal: AbortSignal): Promise<KubernetesObject | null> {
    return this.#orNull(address, {
      method: 'GET',
      path: objectPath(address),
      what: `get ${objectLabel(address)}`,
      isRepeatable: true,
      signal,
    });
  }

  async list(selection: ObjectSelection, signal: AbortSignal) {
    const { pageSize } = this.#options;
    return await listPaged(this.#transport, selection, { pageSize, signal });
  }

  watched(selection: ObjectSelection): Watched {
    const copy = new WatchedCopy(this.#transport, selection, this.#options);
    this.#copies.add(copy);
    copy.closed.addEventListener('abort', () => this.#copies.delete(copy), { once: true });
    return copy;
  }

  async raw(path: string, signal: AbortSignal): Promise<unknown> {
    const what = `get ${path}`;
    const { body } = await this.#transport.call({ method: 'GET', path, what, isRepeatable: true, signal });
    return body;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#copies].map((copy) => copy.close()));
    await this.#transport.close();
  }

  async #orNull(address: ObjectAddress, call: Call): Promise<KubernetesObject | null> {
    try {
      return objectOf((await this.#transport.call(call)).body, address);
    } catch (error) {
      if (faultReason(error) === 'absent') return null;
      throw error;
    }
  }
}
