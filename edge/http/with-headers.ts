/** Changes a response's headers. If they are immutable, as in responses of `fetch` and the cache, changes a copy. */
export function withHeaders(response: Response, change: (headers: Headers) => void): Response {
  try {
    change(response.headers);
    return response;
  } catch {
    const copy = new Response(response.body, response);
    change(copy.headers);
    return copy;
  }
}
