/** Replaces a 200 by a 304 where `if-none-match` names its etag (RFC 9110, 13.1.2: weak comparison, `*` matches any). */
export function answerConditional(request: Request, response: Response): Response {
  const condition = request.headers.get('if-none-match');
  if (condition === null || response.status !== 200) return response;
  const etag = response.headers.get('etag');
  if (etag === null) return response;
  const bare = (tag: string) => tag.trim().replace(/^W\//, '');
  if (condition.trim() !== '*' && !condition.split(',').some((tag) => bare(tag) === bare(etag))) {
    return response;
  }
  const headers = new Headers(response.headers);
  headers.delete('content-type');
  headers.delete('content-length');
  return new Response(null, { status: 304, headers });
}
