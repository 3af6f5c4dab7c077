import { callService, type Service } from './call.ts';

/** Sends the request and reads the whole answer within the limit. Throws `CliError` like `callService`. */
export async function fetchWhole(service: Service, request: Request, timeoutMs: number): Promise<Response> {
  const call = { method: request.method, path: new URL(request.url).pathname, timeoutMs };
  return await callService(service, call, async (signal) => {
    const response = await fetch(request, { signal });
    // Read here: the limit covers the body too.
    const body = await response.arrayBuffer();
    return new Response(body.byteLength === 0 ? null : body, response);
  });
}

/** The status of an answer, and its body; `null` if that is not JSON. */
export async function fetchJson(
  url: URL,
  init: RequestInit,
): Promise<{ readonly status: number; readonly json: unknown }> {
  const response = await fetch(url, init);
  const text = await response.text();
  try {
    return { status: response.status, json: JSON.parse(text) };
  } catch {
    return { status: response.status, json: null };
  }
}
