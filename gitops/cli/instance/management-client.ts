import createClient, { type Client } from 'openapi-fetch';
import type { components, operations, paths } from '../../clients/management-api.d.ts';
import { CliError } from '../output/cli-error.ts';

export type CreatedContainer = components['schemas']['Container'];
export type ContainerRequest = operations['createContainer']['requestBody']['content']['application/json'];

/** What a call of openapi-fetch comes to; `error` is a problem, or the words of a proxy in between. */
interface Outcome<Data> {
  readonly data?: Data;
  readonly error?: unknown;
  readonly response: Response;
}

/** The management API as the command line uses it; it has no way in that a dashboard doesn't have. */
export class ManagementClient {
  readonly #api: Client<paths>;

  constructor(url: string, token: string) {
    this.#api = createClient<paths>({
      baseUrl: url,
      headers: { authorization: `Bearer ${token}` },
      fetch: (request) =>
        fetch(request).catch((cause: unknown) => {
          throw new CliError(`the management API at ${url} can't be reached`, { cause });
        }),
    });
  }

  /** Creates a client with its members; answers its id. */
  async addClient(name: string, members: readonly { subject: string; role: string }[]): Promise<string> {
    const body = { name, members: [...members] };
    return answered('POST /clients', await this.#api.POST('/clients', { body })).id;
  }

  async setMember(clientId: string, subject: string, role: string): Promise<void> {
    const params = { path: { id: clientId, subject } };
    const outcome = await this.#api.PUT('/clients/{id}/members/{subject}', { params, body: { role } });
    answered(`PUT /clients/${clientId}/members/${subject}`, outcome);
  }

  async createContainer(body: ContainerRequest, idempotencyKey: string): Promise<CreatedContainer> {
    const params = { header: { 'idempotency-key': idempotencyKey } };
    return answered('POST /server-containers', await this.#api.POST('/server-containers', { params, body }));
  }

  /** `null`: there is no such container, or it isn't ours to see. */
  async container(id: string): Promise<CreatedContainer | null> {
    const outcome = await this.#api.GET('/server-containers/{id}', { params: { path: { id } } });
    return outcome.response.status === 404 ? null : answered(`GET /server-containers/${id}`, outcome);
  }
}

/** The body of a 2xx; anything else is a `CliError` with the API's own words. */
function answered<Data>(call: string, { data, error, response }: Outcome<Data>): Data {
  if (data !== undefined) return data;
  throw new CliError(`${call}: ${wordsOf(error) ?? `status ${response.status}`}`);
}

function wordsOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null) return null;
  if ('detail' in error && typeof error.detail === 'string') return error.detail;
  return 'title' in error && typeof error.title === 'string' ? error.title : null;
}
