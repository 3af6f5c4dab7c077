import createFetchClient, {
  type Client,
  type ClientPathsWithMethod,
  type MaybeOptionalInit,
  type MethodResponse,
} from 'openapi-fetch';
import type { WithoutPlan } from './committed-paths.ts';
import { KEYED_OPERATIONS } from './generated/keyed-operations.ts';
import type { paths } from './generated/management-api.d.ts';
import { problemFrom } from './problem.ts';
import { sendWithRetries } from './retry.ts';

/** Streams and exports are texts, which this client doesn't read. */
type Api = Client<paths, 'application/json'>;
type Verb = 'get' | 'put' | 'post' | 'delete' | 'patch';

/** What an endpoint answers, with the response's headers and the `etag` for the next `if-match`. */
export interface ApiAnswer<Data> {
  readonly data: Data;
  readonly etag: string | null;
  readonly response: Response;
}

/** The second argument: optional where the endpoint demands neither parameters nor a body. */
type Rest<Init> = undefined extends Init ? [init?: Init] : [init: Init];

/** What a call asks for: with `dryRun` the plan of a change, otherwise the change itself. */
type Asked<Answer, Init> = Init extends { params: { query: { dryRun: '1' | 'true' } } }
  ? Extract<Answer, { readonly plan: unknown }>
  : WithoutPlan<Answer>;

/** An endpoint's call. Throws `ApiProblem` for any answer other than a 2xx. */
type Call<Method extends Verb> = <
  Path extends ClientPathsWithMethod<Api, Method>,
  const Init extends MaybeOptionalInit<paths[Path], Method>,
>(
  path: Path,
  ...rest: Rest<Init>
) => Promise<ApiAnswer<Asked<MethodResponse<Api, Method, Path, Init>, Init>>>;

/** The paths whose GET answers a page: a list, as `items` or under another name, and `next`. */
export type ListPath = {
  [Path in ClientPathsWithMethod<Api, 'get'>]: MethodResponse<Api, 'get', Path> extends { next: unknown }
    ? Path
    : never;
}[ClientPathsWithMethod<Api, 'get'>];

type Page<Path extends ListPath> = MethodResponse<Api, 'get', Path>;

/** One item of a list. */
export type ListItem<Path extends ListPath> =
  Extract<
    Page<Path>[Exclude<keyof Page<Path>, typeof MISSING>],
    readonly unknown[]
  > extends readonly (infer Item)[]
    ? Item
    : never;

/** The member of a page that lists the times of incomplete data; it is no list of items. */
const MISSING = 'missing';

export interface TagyardClient {
  readonly get: Call<'get'>;
  readonly put: Call<'put'>;
  /** A creation gets an idempotency key unless the call names one, so that it can be repeated. */
  readonly post: Call<'post'>;
  readonly patch: Call<'patch'>;
  readonly delete: Call<'delete'>;
  /** All items of a list, page by page. */
  list<Path extends ListPath>(
    path: Path,
    init?: MaybeOptionalInit<paths[Path], 'get'>,
  ): AsyncGenerator<ListItem<Path>, void, void>;
}

export interface TagyardClientOptions {
  /** The base URL of the management API. */
  readonly url: string;
  /**
   * The bearer token, or a function that returns the current one. It is called before every attempt. Without one, a
   * browser's session is the caller.
   */
  readonly token?: string | (() => string | Promise<string>);
  /** Repetitions after a 429 or 503 with `retry-after`; after no answer only of a GET or with a key. Default: 3. */
  readonly retries?: number;
  /** The longest `retry-after` that is waited for, in seconds. Default: 60. */
  readonly longestWaitSeconds?: number;
  /** Default: the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

/**
 * A client of the management API, typed by its OpenAPI document.
 *
 * @example
 * const client = createClient({ url: 'https://api.example.net', token: process.env.TAGYARD_TOKEN });
 * const failing = client.list('/server-containers', { params: { query: { state: ['failing'] } } });
 * for await (const { name, state } of failing) console.log(name, state?.sentence);
 */
export function createClient(options: TagyardClientOptions): TagyardClient {
  const { url, token, retries = 3, longestWaitSeconds = 60, fetch = globalThis.fetch } = options;
  const authorization = async () =>
    token === undefined ? null : `Bearer ${typeof token === 'string' ? token : await token()}`;
  const retry = { fetch, retries, longestWaitMs: longestWaitSeconds * 1000, authorization };
  const api = createFetchClient<paths, 'application/json'>({
    baseUrl: url,
    fetch: (request) => sendWithRetries(request, retry),
  });
  api.use({
    onRequest({ request, schemaPath }) {
      if (!isKeyed(request.method, schemaPath) || request.headers.has('idempotency-key')) return;
      request.headers.set('idempotency-key', crypto.randomUUID());
    },
    async onResponse({ request, schemaPath, response }) {
      if (!response.ok) throw await problemFrom(`${request.method} ${schemaPath}`, response);
    },
  });

  const call =
    (method: Verb) =>
    async (path: string, init?: object): Promise<ApiAnswer<unknown>> => {
      // The caller's types were checked; here the call can be of any endpoint.
      const { data, response } = await api.request(method, path as never, init as never);
      return { data, etag: response.headers.get('etag'), response };
    };
  const get = call('get');
  return {
    get,
    put: call('put'),
    post: call('post'),
    patch: call('patch'),
    delete: call('delete'),
    list: (path: string, init: object = {}) => pages(get, path, init),
  } as TagyardClient; // the OpenAPI document types each call
}

function isKeyed(method: string, path: string): boolean {
  return KEYED_OPERATIONS.some((keyed) => keyed === `${method} ${path}`);
}

async function* pages(
  get: (path: string, init: object) => Promise<ApiAnswer<unknown>>,
  path: string,
  init: { params?: { query?: object } },
): AsyncGenerator<unknown, void, void> {
  let position = {};
  for (;;) {
    const query = { ...init.params?.query, ...position };
    const { data } = await get(path, { ...init, params: { ...init.params, query } });
    const page = data as Readonly<Record<string, unknown>>; // a list answers an object
    yield* itemsOf(page);
    if (typeof page.next !== 'string') return;
    position = { cursor: page.next };
  }
}

function itemsOf({ [MISSING]: _, ...page }: Readonly<Record<string, unknown>>): readonly unknown[] {
  return Object.values(page).find((member): member is unknown[] => Array.isArray(member)) ?? [];
}
