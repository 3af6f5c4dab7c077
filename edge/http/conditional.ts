/** A strong entity tag: half of a SHA-256, which is wide enough for anything but an adversary with our own scripts. */
export async function etagOf(data: ArrayBuffer | Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', data);
  return `"${new Uint8Array(digest, 0, 16).toHex()}"`;
}

/** 304 in place of a 200 whose etag the caller names (RFC 9110, 13.1.2: weak comparison, `*` matches any). */
export function answerConditional(request: Request, response: Response): Response {
  const asked = request.headers.get('if-none-match');
  if (asked === null || response.status !== 200) return response;
  const etag = response.headers.get('etag');
  if (etag === null) return response;
  const bare = (tag: string) => tag.trim().replace(/^W\//, '');
  if (asked.trim() !== '*' && !asked.split(',').some((tag) => bare(tag) === bare(etag))) return response;
  const headers = new Headers(response.headers);
  headers.delete('content-type');
  headers.delete('content-length');
  return new Response(null, { status: 304, headers });
}
