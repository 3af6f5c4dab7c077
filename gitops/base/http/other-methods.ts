import type { FastifyInstance } from 'fastify';

const METHODS = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'] as const;

/**
 * Collects the addresses that are registered from now on. The result makes every other method of each of them answer with
 * `allow` and the problem that `problem` makes (RFC 9110, 15.5.6); call it where the answer shall be registered.
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
        // Before the body is read: no body of such a request can make another answer.
        onRequest: async (_request, reply) => {
          reply.header('allow', allow);
          throw problem();
        },
        handler: async () => undefined,
      });
    }
  };
}
