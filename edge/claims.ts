import type { Plugin, Route } from '../plugins/contract.ts';

/**
 * Throws where two routes (of two plugins, or of one) claim a method and path. Run when the worker is built, so that a
 * clash never meets a visitor.
 */
export function refuseClashes(plugins: readonly Plugin[]): void {
  /** By shape, which is what a request can tell apart: `/x/:a` and `/x/:b` are one. */
  const shapes = new Map<string, { plugin: Plugin; route: Route }[]>();
  for (const plugin of plugins) {
    for (const route of plugin.routes) {
      const shape = route.path.replace(/:\w+/g, ':');
      const claims = shapes.get(shape) ?? [];
      const clash = claims.find((claim) => clashes(claim.route, route));
      if (clash !== undefined) {
        const [one, other] = [clash, { plugin, route }].map(
          (claim) => `${claim.plugin.name} (${claim.route.method} ${claim.route.path})`,
        );
        throw new Error(`${one} and ${other} claim the same`);
      }
      shapes.set(shape, [...claims, { plugin, route }]);
    }
  }
}

/** Methods may share a path, but only under one name of its parameters: the router knows it by that. */
function clashes(one: Route, other: Route): boolean {
  return (
    one.path !== other.path || one.method === other.method || one.method === 'ALL' || other.method === 'ALL'
  );
}
