import { z } from 'zod';
import { CliError } from '../cli-error.ts';

const containerSchema = z.looseObject({
  id: z.string(),
  status: z.string(),
  statusReason: z.string().nullable().optional(),
  hostnames: z.looseObject({ edge: z.string() }),
  domains: z.array(z.looseObject({ domain: z.string(), snippet: z.string() })),
});
export type ContainerView = z.infer<typeof containerSchema>;

const problemSchema = z.looseObject({ title: z.string(), detail: z.string().optional() });

/** The management API as the command line uses it; it has no way in that a dashboard doesn't have. */
export class ManagementClient {
  readonly #url: string;
  readonly #token: string;

  constructor(url: string, token: string) {
    this.#url = url;
    this.#token = token;
  }

  /** Creates a client with its members; answers its id. */
  async addClient(name: string, members: readonly { subject: string; role: string }[]): Promise<string> {
    const body = await this.#call('POST', '/clients', { name, members });
    return z.looseObject({ id: z.string() }).parse(body).id;
  }

  async setMember(clientId: string, subject: string, role: string): Promise<void> {
    await this.#call('PUT', `/clients/${clientId}/members/${encodeURIComponent(subject)}`, { role });
  }

  async createContainer(request: object, idempotencyKey: string): Promise<ContainerView> {
    const headers = { 'idempotency-key': idempotencyKey };
    return containerSchema.parse(await this.#call('POST', '/server-containers', request, headers));
  }

  /** `null`: there is no such container, or it isn't ours to see. */
  async container(id: string): Promise<ContainerView | null> {
    const body = await this.#call('GET', `/server-containers/${id}`, undefined, {}, [404]);
    return body === null ? null : containerSchema.parse(body);
  }

  /** The body of a 2xx, `null` for a status in `tolerated`; anything else is a `CliError` with the API's own words. */
  async #call(
    method: string,
    path: string,
    body?: object,
    headers: Record<string, string> = {},
    tolerated: readonly number[] = [],
  ): Promise<unknown> {
    const answer = await fetch(new URL(path, this.#url), {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...headers,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch((cause: unknown) => {
      throw new CliError(`the management API at ${this.#url} can't be reached`, { cause });
    });
    if (tolerated.includes(answer.status)) return null;
    const json: unknown = answer.status === 204 ? null : await answer.json();
    if (answer.ok) return json;
    const problem = problemSchema.safeParse(json);
    const words = problem.success ? (problem.data.detail ?? problem.data.title) : `status ${answer.status}`;
    throw new CliError(`${method} ${path}: ${words}`);
  }
}
