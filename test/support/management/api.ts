import createClient from 'openapi-fetch';
import { request } from 'undici';
import type { CommittedPaths } from '../../../base/client/committed-paths.ts';
import type { Run } from '../../../gitops/cli/instance/run-schema.ts';
import { eventually } from '../eventually.ts';

/** An answer with its body, parsed where it is JSON. */
interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  // biome-ignore lint/suspicious/noExplicitAny: each test states the shape that it expects
  readonly body: any;
}

async function call(
  url: string,
  method: 'GET' | 'POST' | 'DELETE' | 'PATCH' | 'PUT' | 'HEAD' | 'OPTIONS',
  headers: Record<string, string>,
  body?: object | string,
): Promise<Answer> {
  const payload = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
  const type = typeof body === 'object' ? { 'content-type': 'application/json' } : {};
  const answer = await request(url, { method, headers: { ...type, ...headers }, ...payload });
  const text = await answer.body.text();
  const json = /json/.test(String(answer.headers['content-type'])) && text !== '';
  return { status: answer.statusCode, headers: answer.headers, body: json ? JSON.parse(text) : text };
}

type Method = Parameters<typeof call>[1];

/** The answer to a request that is no dry run. */
type Done<Data> = Exclude<Data, { readonly plan: unknown }>;

/**
 * The body of an answer of the management API, typed by the API's document. Throws unless the status is 2xx. Not for dry
 * runs.
 */
export async function ok<Data>(
  call: Promise<{ readonly data?: Data; readonly error?: unknown; readonly response: Response }>,
): Promise<{ readonly status: number; readonly headers: Headers; readonly body: Done<Data> }> {
  const { data, error, response } = await call;
  if (data === undefined) throw new Error(`${response.url}: ${response.status} ${JSON.stringify(error)}`);
  return { status: response.status, headers: response.headers, body: data as Done<Data> }; // only a dry run answers a plan
}

/** Parameters of an endpoint of one container. */
export const at = (id: string) => ({ params: { path: { id } } });

/** The services of a running instance, each called as its users call it. */
export function api(run: Run, token = run.demo.token) {
  const management = createClient<CommittedPaths>({
    baseUrl: run.management.url,
    headers: { authorization: `Bearer ${token}` },
  });
  const provisioner = (method: Method, path: string, body?: object) =>
    call(`${run.provisioner.url}${path}`, method, { 'x-secret': run.provisioner.secret }, body);
  /** A hostname of the edge, on the port where the edge listens. */
  const edge = (
    host: string,
    method: Method,
    path: string,
    body?: object | string,
    headers: Record<string, string> = {},
  ) =>
    call(
      `${run.edge.url}${path}`,
      method,
      { host: `${host}:${new URL(run.edge.url).port}`, ...headers },
      body,
    );
  /** A custom domain, on the proxy's plain port. */
  const proxy = (host: string, method: Method, path: string, headers: Record<string, string> = {}) =>
    call(`${run.proxy.url}${path}`, method, { host: `${host}:${new URL(run.proxy.url).port}`, ...headers });
  /** Waits until a container has the status `wanted`. Throws at once where it is `failed` instead. */
  const reaches = (id: string, wanted: string) => {
    let status = '';
    return eventually(
      async () => {
        const { body } = await ok(management.GET('/server-containers/{id}', at(id)));
        status = body.status;
        if (status !== wanted) throw new Error(`${id} is ${status}: ${body.statusReason ?? ''}`);
        return body;
      },
      { timeoutMs: 60_000, until: () => status === 'failed' },
    );
  };
  return { management, provisioner, edge, proxy, reaches };
}
