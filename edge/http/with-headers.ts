/** Changes a response's headers. If they are immutable, as in responses of `fetch` and the cache, changes a copy. */
export function withHeaders(response: Response, change: (headers: Headers) => void): Response {
  try {
    change(response.headers);
    return response;
  } catch {
    return withHeaders(new Response(response.body, response), change);
  }
}
