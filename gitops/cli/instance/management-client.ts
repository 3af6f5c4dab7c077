import createClient, { type Client } from 'openapi-fetch';
import type { CommittedPaths } from '../../../base/client/committed-paths.ts';
import type { components, operations } from '../../../base/client/generated/management-api.d.ts';
import { CliError } from '../output/cli-error.ts';
import { fetchWhole } from './fetch-whole.ts';
import { problemOf } from './problem.ts';

export type CreatedContainer = components['schemas']['Container'];
type Member = components['schemas']['Member'];
type SiteState = components['schemas']['SiteState'];
type ContainerRequest = operations['createContainer']['requestBody']['content']['application/json'];

const SERVICE = { name: 'the management API' };
/** A creation answers within 30 s. */
const TIMEOUT_MS = 45_000;

/** The result of a call of openapi-fetch. `error` is a problem, or the body that a proxy answered. */
interface CallResult<Data> {
  readonly data?: Data;
  readonly error?: unknown;
  readonly response: Response;
}

/** The command line's client of the management API. It uses the public API only, like a dashboard. */
export class ManagementClient {
  readonly #api: Client<CommittedPaths>;

  constructor(url: string, token: string, limitMs = TIMEOUT_MS) {
    if (!URL.canParse(url)) throw new CliError(`MANAGEMENT_URL=${url} is not a URL`);
    this.#api = createClient<CommittedPaths>({
      baseUrl: url,
      headers: { authorization: `Bearer ${token}` },
      fetch: (request) => fetchWhole({ ...SERVICE, url }, request, limitMs),
    });
  }

  /** Creates a client with its members. Returns its id. */
  async addClient(name: string, members: readonly { subject: string; role: string }[]): Promise<string> {
    const body = { name, members: members as Member[] }; // the API refuses unknown roles
    const made = bodyOf('POST /clients', await this.#api.POST('/clients', { body }));
    if ('plan' in made) throw new CliError('POST /clients answered with a plan');
    return made.id;
  }

  async setMember(clientId: string, subject: string, role: string): Promise<void> {
    const params = { path: { id: clientId, subject } };
    const body = { role: role as Member['role'] }; // the API refuses unknown roles
    const result = await this.#api.PUT('/clients/{id}/members/{subject}', { params, body });
    bodyOf(`PUT /clients/${clientId}/members/${subject}`, result);
  }

  async createContainer(body: ContainerRequest, idempotencyKey: string): Promise<CreatedContainer> {
    const params = { header: { 'idempotency-key': idempotencyKey } };
    const result = await this.#api.POST('/server-containers', { params, body });
    const created = bodyOf('POST /server-containers', result);
    if ('plan' in created)
      throw new Error('POST /server-containers answered with a plan, although it was no dry run');
    return created;
  }

  /** `null`: there is no such container, or the caller is not a member of its client. */
  async container(id: string): Promise<CreatedContainer | null> {
    const result = await this.#api.GET('/server-containers/{id}', { params: { path: { id } } });
    return result.response.status === 404 ? null : bodyOf(`GET /server-containers/${id}`, result);
  }

  /** The states of the caller's sites, by site. */
  async states(): Promise<Map<string, SiteState>> {
    const states = new Map<string, SiteState>();
    for (let cursor: string | undefined; ; ) {
      const page = cursor === undefined ? {} : { cursor };
      const query = { view: 'summary' as const, limit: 200, ...page };
      const result = await this.#api.GET('/server-containers', { params: { query } });
      const { containers, next } = bodyOf('GET /server-containers', result);
      for (const { siteId, state } of containers) states.set(siteId, state);
      if (next === null) return states;
      cursor = next;
    }
  }

  /** The caller's container of a site; `null`: there is none. */
  async containerOfSite(site: string): Promise<CreatedContainer | null> {
    for (let cursor: string | undefined; ; ) {
      const query = { limit: 100, ...(cursor === undefined ? {} : { cursor }) };
      const result = await this.#api.GET('/server-containers', { params: { query } });
      const { containers, next } = bodyOf('GET /server-containers', result);
      const found = containers.find(({ siteId, status }) => siteId === site && status !== 'removed');
      // The list has no tokens.
      if (found !== undefined) return await this.container(found.id);
      if (next === null) return null;
      cursor = next;
    }
  }
}

/** The body of a 2xx. Throws `CliError` with the problem and its fields for anything else. */
function bodyOf<Data>(call: string, { data, error, response }: CallResult<Data>): Data {
  if (data !== undefined) return data;
  const { message } = problemOf({ ...SERVICE, url: response.url }, response.status, error);
  throw new CliError(`${call}: ${message}`);
}
