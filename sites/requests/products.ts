/** The products that a forwarder can run in, by their key in the API's answers. */
export const PRODUCTS = [
  'nginx',
  'apache',
  'caddy',
  'haproxy',
  'cloudflareWorker',
  'fastly',
  'cloudfront',
  'akamai',
  'vercel',
  'netlify',
  'nextjs',
] as const;
