import type { FastifyInstance } from 'fastify';

const METHODS = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'] as const;

/**
 * Collects the URLs that are registered from now on. Call the result to register all other methods of these URLs: they
 * answer with `allow` and the problem that `problem` creates (RFC 9110, 15.5.6).
 */
export function otherMethods(app: FastifyInstance, problem: () => Error): (on: FastifyInstance) => void {
  const known = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const methods = known.get(url) ?? new Set();
    for (const one of [method].flat()) methods.add(one.toUpperCase());
    known.set(url, methods);
  });
  return (on) => {
    for (const [url, allowed] of [...known]) {
      const others = METHODS.filter((method) => !allowed.has(method));
      if (others.length === 0) continue;
      const allow = [...allowed].sort().join(', ');
      on.route({
        method: others,
        url,
        schema: { hide: true },
        // Runs before the body is read, so that no body can change the answer.
        onRequest: async (_request, reply) => {
          reply.header('allow', allow);
          throw problem();
        },
        handler: async () => undefined,
      });
    }
  };
}
