import type { CheckContext } from '../check.ts';
import { failed, passed, skipped } from '../result.ts';

/** Only the host can read the zone's routes. A visit doesn't show that one of them takes some paths. */
export function checkEdgeRoutes({ host }: Pick<CheckContext, 'host'>) {
  if (host?.edgePath === undefined) return [skipped(null, 'the routes of the edge’s zone weren’t read')];
  const { problem, fix, unread = null } = host.edgePath;
  if (problem === null && unread !== null) return [skipped(null, unread)];
  if (problem === null) return [passed(null, 'all requests of the edge hostname reach the worker')];
  return [failed(null, problem, fix ?? 'See the Workers routes of the zone in Cloudflare’s dashboard.')];
}
