import type { FastifyInstance } from 'fastify';

/**
 * Warns once if requests come through a proxy although no proxy is trusted. All callers behind that proxy then have its
 * address.
 */
export function warnOfUntrustedProxy(app: FastifyInstance, trustedProxies: readonly string[]): void {
  if (trustedProxies.length > 0) return;
  let hasWarned = false;
  app.addHook('onRequest', async ({ headers, socket, log }) => {
    if (hasWarned || headers['x-forwarded-for'] === undefined) return;
    hasWarned = true;
    const { remoteAddress: proxy } = socket;
    log.warn(
      { proxy },
      'x-forwarded-for is ignored: name the proxies in front of the API in MANAGEMENT_TRUSTED_PROXIES',
    );
  });
}
