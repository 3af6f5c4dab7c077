import type { IncomingMessage, RequestOptions } from 'node:http';

interface HttpRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Default: redirects are followed. */
  readonly redirect?: 'manual';
}

interface HttpAnswer {
  readonly status: number;
  /** The body; `null` if it is not JSON. */
  readonly json: unknown;
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * One HTTP request by Node's own client. `fetch` is used for redirects only: loading it takes longer than all other
 * work of a verb such as `status`.
 */
export async function httpCall(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
  const answer = await send(request, signal);
  if (request.redirect === 'manual' || !REDIRECTS.has(answer.status)) return answer;
  const { url, method, headers, body } = request;
  const response = await fetch(url, { method, headers, signal, ...(body === undefined ? {} : { body }) });
  return { status: response.status, json: parsed(await response.text()) };
}

async function send({ url, method, headers, body }: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
  const { request } = url.protocol === 'https:' ? await import('node:https') : await import('node:http');
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  const options: RequestOptions = { method, headers: { ...headers, ...length }, signal };
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  // As bytes: Node would send a text together with the headers, and encode these as UTF-8 too.
  request(url, options, resolve)
    .once('error', reject)
    .end(body === undefined ? undefined : Buffer.from(body));
  const response = await promise;
  response.setEncoding('utf8');
  let text = '';
  for await (const chunk of response) text += chunk;
  return { status: response.statusCode ?? 0, json: parsed(text) };
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
