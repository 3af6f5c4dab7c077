import { randomUUID } from 'node:crypto';
import type { RouteAccess } from '../../../management/access/routes.ts';
import { serviceAccountJson } from '../service-account.ts';
import { certificatePair } from '../tls/pair.ts';
import { type Answer, creation, type World } from './world.ts';

interface Body {
  readonly content: {
    readonly 'application/json': { readonly examples: Record<string, { readonly value: object }> };
  };
}

/** Routes that have a parameter in the query. */
const QUERY: Readonly<Record<string, string>> = {
  removeDomain: '?domain=acme.example',
  removeCustomDomain: '?domain=acme.example',
};

/**
 * Valid calls of every route of an API. Its client and organisation have a member of each role, who has the role's name;
 * the operator is `root`.
 */
export class RouteCalls {
  readonly #world: World;
  readonly #examples: ReadonlyMap<string, object | undefined>;
  readonly #ids: Readonly<Record<'client' | 'other' | 'organisation' | 'container' | 'operation', string>>;
  #webhook = '';

  private constructor(
    world: World,
    examples: ReadonlyMap<string, object | undefined>,
    ids: Readonly<Record<'client' | 'other' | 'organisation' | 'container' | 'operation', string>>,
  ) {
    this.#world = world;
    this.#examples = examples;
    this.#ids = ids;
  }

  static async open(world: World): Promise<RouteCalls> {
    const members = ['owner', 'admin', 'editor', 'viewer'].map((role) => ({ subject: role, role }));
    const make = async (path: string) =>
      (await world.call('POST', path, { as: 'root', body: { name: 'Acme', members } })).body.id;
    const [client, other] = [await make('/clients'), await make('/clients')];
    const organisation = await make('/organisations');
    const body = creation(client);
    const container = (await world.call('POST', '/server-containers', { as: 'owner', body })).body.id;
    const { items } = (await world.call('GET', `/server-containers/${container}/operations`, { as: 'owner' }))
      .body;
    const document = (await world.call('GET', '/openapi.json')).body;
    const examples = new Map(
      Object.values<Record<string, { operationId: string; requestBody?: Body }>>(document.paths)
        .flatMap((methods) => Object.values(methods))
        .map(({ operationId, requestBody }) => {
          const all = Object.values(requestBody?.content['application/json'].examples ?? {});
          return [operationId, (all.find(({ value }) => !('image' in value)) ?? all[0])?.value];
        }),
    );
    return new RouteCalls(world, examples, {
      client,
      other,
      organisation,
      container,
      operation: items[0].id,
    });
  }

  get container(): string {
    return this.#ids.container;
  }

  async call(route: RouteAccess, as: string, headers: Record<string, string> = {}): Promise<Answer> {
    return await (await this.prepared(route, as, headers))();
  }

  /** A call to make later: its objects exist already. */
  async prepared(
    route: RouteAccess,
    as: string,
    headers: Record<string, string> = {},
  ): Promise<() => Promise<Answer>> {
    const body = await this.#bodyOf(route);
    const url = await this.urlOf(route);
    const method = route.method as 'GET'; // one of the verbs that routes have
    return () => this.#world.call(method, url, { as, headers, ...(body === undefined ? {} : { body }) });
  }

  /** A valid address of the route, whose objects exist. */
  async urlOf(route: RouteAccess): Promise<string> {
    return `${await this.#pathOf(route)}${QUERY[route.operation] ?? ''}`;
  }

  async #tokenId(): Promise<string> {
    const body = { name: 'x', client: this.#ids.client, scopes: ['viewer'] };
    return (await this.#world.call('POST', '/tokens', { as: 'owner', body })).body.id;
  }

  /** The webhook of the last call, or a new one if that was deleted: a client may have only a few. */
  async #webhookId(): Promise<string> {
    const known = `/webhooks/${this.#webhook}`;
    if (this.#webhook !== '' && (await this.#world.call('GET', known, { as: 'owner' })).status === 200) {
      return this.#webhook;
    }
    const body = { clientId: this.#ids.client, url: 'http://127.0.0.1:9/' };
    this.#webhook = (await this.#world.call('POST', '/webhooks', { as: 'owner', body })).body.id;
    return this.#webhook;
  }

  async #pathOf({ url }: RouteAccess): Promise<string> {
    const { client, organisation, container, operation } = this.#ids;
    const byFolder: Record<string, string> = {
      clients: client,
      organisations: organisation,
      'server-containers': container,
      operations: operation,
      tokens: url.startsWith('/tokens/:id') ? await this.#tokenId() : '',
      webhooks: url.startsWith('/webhooks/:id') ? await this.#webhookId() : '',
    };
    return url
      .replace(':id', byFolder[url.split('/')[1] ?? ''] ?? randomUUID())
      .replace(':subject', 'ada')
      .replace(':domain', 'acme.example')
      .replace(':token', '0123456789abcdef')
      .replace(':fpid', '0123456789abcdef0123456789abcdef')
      .replace(/:\w+/g, () => randomUUID());
  }

  async #originOf(container: string): Promise<string> {
    const path = `/server-containers/${container}`;
    const { body } = await this.#world.call('GET', path, { as: 'owner' });
    return body.hostnames?.origin ?? 'origin.example.net';
  }

  async #bodyOf({ operation }: RouteAccess): Promise<object | undefined> {
    const example = this.#examples.get(operation);
    if (example === undefined) return undefined;
    const { client, organisation, container, other } = this.#ids;
    return {
      ...example,
      ...('clientId' in example ? { clientId: client } : {}),
      ...('client' in example ? { client } : {}),
      ...('organisation' in example ? { organisation } : {}),
      ...('to' in example ? { to: other, containers: [randomUUID()] } : {}),
      ...('private_key' in example ? { private_key: serviceAccountJson().private_key } : {}),
      ...('privateKey' in example ? await certificatePair(await this.#originOf(container)) : {}),
      ...('domains' in example && operation === 'orderDomains' ? { domains: ['acme.example'] } : {}),
      // A domain that the container has already: another one would need further members of the body.
      ...(operation === 'addDomain' ? { domain: 'acme.example' } : {}),
    };
  }
}
