import { CORE_BOOT_MEMBERS, type Plugin, type Route } from '../plugins/contract.ts';

/**
 * Throws if two plugins claim the same route, the same member of `/boot`'s answer, or the visitor's id, or if one stands
 * before a plugin that it follows. Runs when the worker is built.
 */
export function refuseClashes(plugins: readonly Plugin[]): void {
  refuseRouteClashes(plugins);
  refuseIdClashes(plugins);
  refuseMemberClashes(plugins);
  refuseOrder(plugins);
}

function refuseRouteClashes(plugins: readonly Plugin[]): void {
  /** The routes by shape: every request that matches `/x/:a` also matches `/x/:b`. */
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
        throw new Error(`${one} and ${other} claim the same route`);
      }
      shapes.set(shape, [...claims, { plugin, route }]);
    }
  }
}

/**
 * Two routes of one shape don't clash if their paths are the same text and their methods differ, neither being `ALL`.
 * They clash if their parameters have different names: the router keeps routes by path text and would find only one.
 */
function clashes(one: Route, other: Route): boolean {
  return (
    one.path !== other.path || one.method === other.method || one.method === 'ALL' || other.method === 'ALL'
  );
}

/** Only one route may set the visitor's id: a second one could give a visitor the id of another. */
function refuseIdClashes(plugins: readonly Plugin[]): void {
  const [one, other] = plugins.flatMap(({ name, routes }) =>
    routes.filter(({ setsId }) => setsId).map(({ path }) => `${name} (${path})`),
  );
  if (other !== undefined) throw new Error(`${one} and ${other} both set the visitor's id`);
}

/** Two plugins can't write the same member, and no plugin can write a member that the core writes. */
function refuseMemberClashes(plugins: readonly Plugin[]): void {
  const owners = new Map<string, string>(CORE_BOOT_MEMBERS.map((member) => [member, 'Tagyard itself']));
  for (const { name, bootMember } of plugins) {
    for (const member of bootMember === undefined ? [name] : [name, bootMember]) {
      const owner = owners.get(member);
      if (owner !== undefined) {
        throw new Error(`${owner} and ${name} claim the member "${member}" of the answer of /boot`);
      }
      owners.set(member, name);
    }
  }
}

function refuseOrder(plugins: readonly Plugin[]): void {
  for (const [index, { name, follows = [] }] of plugins.entries()) {
    const late = plugins.slice(index).find((other) => follows.includes(other.name));
    if (late !== undefined) throw new Error(`${name} follows ${late.name}, but stands before it in the list`);
  }
}
