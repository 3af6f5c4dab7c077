import { blockedHost, describeRule } from '../../../edge/verification/block-lists.ts';
import { registrableDomain } from '../../../gitops/manifest/schema.ts';
import type { Settings } from '../../context/context.ts';
import { ManagementProblem } from '../../http/errors.ts';
import { needsSuffix, slug, withSuffix } from './site-id.ts';

type Zone = Pick<Settings, 'host' | 'edgeDomain'>;

/** A new site's display name, and the domains of its pages. */
interface Named {
  readonly name: string;
  readonly domains: readonly string[];
}

/**
 * Throws `blocked_name` if a common blocking list matches the edge hostname that the name gives. The problem proposes
 * another name. Sites that exist keep their names, whatever the lists say later.
 */
export function refuseBlockedName({ name, domains }: Named, zone: Zone): void {
  const host = edgeHostname(name, zone);
  const rule = blockedHost(host, { isOwn: false });
  if (rule === null) return;
  const proposal = proposeName(domains, zone);
  throw new ManagementProblem('blocked_name', {
    detail: `${describeRule(rule)}, and the site’s would be ${host}. Create it as “${proposal}”, for example; its display name can be changed afterwards, its hostname can’t.`,
    errors: [{ path: 'name', message: `gives a hostname that ${rule.list} blocks` }],
    proposal,
  });
}

/** A name that gives a hostname that no list matches: that of the first domain, if it is one. */
function proposeName([primary = '']: readonly string[], zone: Zone): string {
  const [label = ''] = (registrableDomain(primary) ?? primary).split('.');
  const id = slug(label);
  const isUsable = (name: string) =>
    !needsSuffix(name, zone.host) && blockedHost(edgeHostname(name, zone), { isOwn: false }) === null;
  return [id, `${id}-shop`].find(isUsable) ?? 'shop';
}

function edgeHostname(name: string, { host, edgeDomain }: Zone): string {
  const id = slug(name);
  return `${needsSuffix(id, host) ? withSuffix(id) : id}.${edgeDomain}`;
}
