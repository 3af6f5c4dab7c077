import createClient, { type Client } from 'openapi-fetch';
import type { components, operations, paths } from '../../clients/generated/management-api.d.ts';
import { CliError } from '../output/cli-error.ts';

export type CreatedContainer = components['schemas']['Container'];
type Member = components['schemas']['Member'];
type ContainerRequest = operations['createContainer']['requestBody']['content']['application/json'];

/** The result of a call of openapi-fetch. `error` is a problem, or the body that a proxy answered. */
interface CallResult<Data> {
  readonly data?: Data;
  readonly error?: unknown;
  readonly response: Response;
}

/** The command line's client of the management API. It uses the public API only, like a dashboard. */
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

  /** Creates a client with its members. Returns its id. */
  async addClient(name: string, members: readonly { subject: string; role: string }[]): Promise<string> {
    const body = { name, members: members as Member[] }; // the API refuses unknown roles
    return bodyOf('POST /clients', await this.#api.POST('/clients', { body })).id;
  }

  async setMember(clientId: string, subject: string, role: string): Promise<void> {
    const params = { path: { id: clientId, subject } };
    const body = { role: role as Member['role'] }; // the API refuses unknown roles
    const result = await this.#api.PUT('/clients/{id}/members/{subject}', { params, body });
    bodyOf(`PUT /clients/${clientId}/members/${subject}`, result);
  }

  async createContainer(body: ContainerRequest, idempotencyKey: string): Promise<CreatedContainer> {
    const params = { header: { 'idempotency-key': idempotencyKey } };
    return bodyOf('POST /server-containers', await this.#api.POST('/server-containers', { params, body }));
  }

  /** `null`: there is no such container, or the caller is no member of its client. */
  async container(id: string): Promise<CreatedContainer | null> {
    const result = await this.#api.GET('/server-containers/{id}', { params: { path: { id } } });
    return result.response.status === 404 ? null : bodyOf(`GET /server-containers/${id}`, result);
  }
}

/** The body of a 2xx. Throws `CliError` with the problem's detail for anything else. */
function bodyOf<Data>(call: string, { data, error, response }: CallResult<Data>): Data {
  if (data !== undefined) return data;
  throw new CliError(`${call}: ${detailOf(error) ?? `status ${response.status}`}`);
}

function detailOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null) return null;
  if ('detail' in error && typeof error.detail === 'string') return error.detail;
  return 'title' in error && typeof error.title === 'string' ? error.title : null;
}
