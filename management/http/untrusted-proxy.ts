import type { FastifyInstance } from 'fastify';

/** Logs once, while no proxy is trusted, that one is in front of the API: all its callers then have one address. */
export function warnOfUntrustedProxy(app: FastifyInstance, trustedProxies: readonly string[]): void {
  if (trustedProxies.length > 0) return;
  let hasWarned = false;
  app.addHook('onRequest', async ({ headers, socket, log }) => {
    if (hasWarned || headers['x-forwarded-for'] === undefined) return;
    hasWarned = true;
    const { remoteAddress: proxy } = socket;
    log.warn(
      { proxy },
      'x-forwarded-for is ignored: name the proxies in front of the API in TRUSTED_PROXIES',
    );
  });
}
