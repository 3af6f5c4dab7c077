/** The page's scripts bear this nonce; what they load in turn is trusted by `strict-dynamic` (CSP Level 3). */
export function contentSecurityPolicy(nonce: string, edgeUrl: string | null): string {
  const edge = edgeUrl === null ? "'self'" : new URL(edgeUrl).origin;
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}' 'strict-dynamic'`,
    "style-src 'self'",
    `img-src 'self' data: ${edge}`,
    `connect-src 'self' ${edge}`,
    `frame-src ${edge}`,
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** The pasted snippet with the page's nonce on its script tags, as a site with a policy has to do. */
export function withNonce(snippet: string, nonce: string): string {
  return snippet.replace(/<script(?=[\s>])/gi, `<script nonce="${nonce}"`);
}
