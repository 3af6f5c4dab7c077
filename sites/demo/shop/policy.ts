/** A policy for scripts with this nonce. `strict-dynamic` also allows the scripts that they load (CSP Level 3). */
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

/** Adds the page's nonce to the snippet's script tags, as every site with such a policy must do. */
export function withNonce(snippet: string, nonce: string): string {
  return snippet.replace(/<script(?=[\s>])/gi, `<script nonce="${nonce}"`);
}
