import { domainToUnicode } from 'node:url';
import { blockedHost, describeRule } from '../../../edge/verification/block-lists.ts';
import { registrableDomain } from '../../../sites/manifest/schema.ts';
import type { Settings } from '../../context/context.ts';
import type { ContainerView } from '../../view/container-view.ts';
import { needsSuffix, slug, withSuffix } from './site-id.ts';

type Zone = Pick<Settings, 'host' | 'edgeDomain'>;

/** A new site's display name, and the domains of its pages. */
interface Named {
  readonly name: string;
  readonly domains: readonly string[];
}

/**
 * The id that a new site gets if it is free: made from its display name, or from its first domain where a common
 * blocking list matches the edge hostname that the name gives. Sites that exist keep their ids, whatever the lists say
 * later.
 */
export function neutralId({ name, domains }: Named, zone: Zone): string {
  const id = slug(name);
  return ruleOf(id, zone) === null ? id : neutralName(domains, zone);
}

/** Why a new site's hostname isn't made from its display name, and what it is made from; empty: no warning. */
export function nameWarnings(
  { name, domains }: Named,
  { siteId, hostnames }: Pick<ContainerView, 'siteId' | 'hostnames'>,
  zone: Zone,
): ContainerView['warnings'] {
  const id = slug(name);
  const rule = ruleOf(id, zone);
  // A site of an older release has the blocked name; the warning about its hostname says so.
  if (rule === null || siteId === id) return [];
  const detail = `${describeRule(rule)}, so the hostname is made from “${neutralName(domains, zone)}” instead of the name; the name is as you gave it`;
  return [{ host: hostnames.edge, detail }];
}

function ruleOf(id: string, zone: Zone) {
  return blockedHost(edgeHostname(id, zone), { isOwn: false });
}

/** Of the first domain's id and that id with `-shop`, the first that needs no suffix and isn't blocked; else `shop`. */
function neutralName([primary = '']: readonly string[], zone: Zone): string {
  const [label = ''] = domainToUnicode(registrableDomain(primary) ?? primary).split('.');
  const id = slug(label);
  const isUsable = (one: string) => !needsSuffix(one, zone.host) && ruleOf(one, zone) === null;
  return [id, `${id}-shop`].find(isUsable) ?? 'shop';
}

function edgeHostname(id: string, { host, edgeDomain }: Zone): string {
  return `${needsSuffix(id, host) ? withSuffix(id) : id}.${edgeDomain}`;
}
