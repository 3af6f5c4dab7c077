import { z } from 'zod';
import {
  containerLogsPage,
  newerContainerLogs,
  type PolicyRefusal,
  policyRefusals,
} from '../../gitops/report/container-logs.ts';
import { ProvisionerError } from '../clients/provisioner-client.ts';
import type { Context } from '../context/context.ts';
import { ManagementProblem } from '../http/errors.ts';

/** Milliseconds for an answer of the host, which itself spends two seconds at most on a search. */
const PAGE_MS = 10_000;
/** How long the host waits for a new line. Meanwhile, a stream doesn't notice the end of a membership. */
const WAIT_SECONDS = 5;

type Page = z.output<typeof containerLogsPage>;
type Newer = z.output<typeof newerContainerLogs>;

/** The lines of a site's containers, which its host keeps. */
export class HostLogs {
  readonly #provisioner: Context['provisioner'];
  /** Streams that wait for the same lines use one call. */
  readonly #waiting = new Map<string, Promise<Newer>>();

  constructor({ provisioner }: Pick<Context, 'provisioner'>) {
    this.#provisioner = provisioner;
  }

  /** Throws `host_unavailable`. */
  async page(site: string, query: Readonly<Record<string, unknown>>, requestId: string): Promise<Page> {
    const path = `/sites/${site}/container-logs?${search(query)}`;
    try {
      return await this.#ask(containerLogsPage, path, { requestId, timeoutMs: PAGE_MS });
    } catch (cause) {
      if (cause instanceof z.ZodError) {
        const detail = 'the provisioner is of another release: update management and provisioner together';
        throw new ManagementProblem('host_unavailable', { detail, cause });
      }
      if (!(cause instanceof ProvisionerError)) throw cause;
      throw new ManagementProblem('host_unavailable', { detail: cause.message, cause });
    }
  }

  /** Lines after a position, as soon as there is one; after some seconds, none. Throws what the call throws. */
  async newer(site: string, query: Readonly<Record<string, unknown>>): Promise<Newer> {
    const waitSeconds = query.after === undefined ? 0 : WAIT_SECONDS;
    const path = `/sites/${site}/container-logs/newer?${search({ ...query, waitSeconds })}`;
    const known = this.#waiting.get(path);
    if (known !== undefined) return await known;
    const timeoutMs = waitSeconds * 1_000 + PAGE_MS;
    const asked = this.#ask(newerContainerLogs, path, { requestId: 'live-container-logs', timeoutMs });
    this.#waiting.set(path, asked);
    try {
      return await asked;
    } finally {
      this.#waiting.delete(path);
    }
  }

  async refusals(): Promise<readonly PolicyRefusal[]> {
    const options = { requestId: 'policy-refusals', timeoutMs: PAGE_MS };
    return (await this.#ask(policyRefusals, '/policy-refusals', options)).refusals;
  }

  /** Deletes a site's lines up to a time, also those that the host has not read yet. */
  async deleteUntil(site: string, until: Date): Promise<void> {
    const path = `/sites/${site}/container-logs?${search({ until: until.toISOString() })}`;
    const context = { requestId: 'container-logs-deletion' };
    await this.#provisioner.ask(z.object({ deleted: z.literal(true) }), { method: 'DELETE', path, context });
  }

  #ask<Schema extends z.ZodType>(
    schema: Schema,
    path: string,
    { requestId, timeoutMs }: { readonly requestId: string; readonly timeoutMs: number },
  ): Promise<z.output<Schema>> {
    return this.#provisioner.ask(schema, { method: 'GET', path, context: { requestId }, timeoutMs });
  }
}

function search(query: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return new URLSearchParams(
    given.map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
}
