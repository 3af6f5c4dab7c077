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

/**
 * A second policy, for a visitor who blocks the edge: scripts load only from the shop and the vendor, and data
 * is sent only to the shop. Like a blocker, it fails the requests inside the browser.
 */
export function withoutEdge(vendorUrl: string | undefined): string {
  const vendor = vendorUrl === undefined ? '' : ` ${new URL(vendorUrl).origin}`;
  return `script-src 'self' 'unsafe-inline'${vendor}; connect-src 'self'; img-src 'self' data:; frame-src 'none'`;
}

/** Adds the page's nonce to the snippet's script tags, as every site with such a policy must do. */
export function withNonce(snippet: string, nonce: string): string {
  return snippet.replace(/<script(?=[\s>])/gi, `<script nonce="${nonce}"`);
}
