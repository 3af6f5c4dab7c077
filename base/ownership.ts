import { hash } from 'node:crypto';
import { canonicalJson } from './canonical-json.ts';

/** The owner of an object, by the ownership mark that is part of it (docs/reconciler.md, rule 5). */
export type Ownership =
  | { readonly kind: 'ours'; readonly site: string; readonly host: string }
  | {
      readonly kind: 'foreign';
      readonly by: string;
      /** Another host of this instance made it for this site. */
      readonly site?: string;
    };

/** The owner that this host's marks name. An instance may have several hosts; each applies only its own sites. */
export interface Identity {
  readonly instance: string;
  readonly host: string;
}

/** First 16 hex digits of SHA-256 over canonical JSON: enough for 10,000 sites. A mark has only the first 8. */
export function contentHash(value: unknown): string {
  return hash16(canonicalJson(value));
}

/** First 16 hex digits of a text's SHA-256. Not a slice of the whole digest: V8 would keep that in memory. */
export function hash16(text: string): string {
  return hash('sha256', text, 'buffer').toString('hex', 0, 8);
}

/** What the mark of an object that belongs to all sites of a host has in place of a site. No site can have this id. */
export const ALL_SITES = '-';

/** `tgy1 <instance> <host> <site> <hash8>`: at most 100 characters, the limit of a free-plan DNS comment. */
export function formatMark(identity: Identity, site: string, hash: string): string {
  return `tgy1 ${identity.instance} ${identity.host} ${site} ${hash.slice(0, 8)}`;
}

const MARK = /^tgy1 ([a-z0-9-]+) ([a-z0-9-]+) ([a-z0-9-]+) ([0-9a-f]{8})$/;

/** The site that a mark of any owner names; `null` if the text isn't a mark. */
export function siteOfMark(text: string | undefined): string | null {
  return MARK.exec(text?.trim() ?? '')?.[3] ?? null;
}

/** The name of a site's network in Docker. */
export function networkName(instance: string, site: string): string {
  return `tagyard-${instance}-${site}`;
}

/**
 * The name of a site's preview server in the site's network: one label, so that no name server has it
 * (docs/containers.md). The digits keep names apart where one nginx serves the sites of several daemons.
 */
export function insidePreviewName({ instance, host }: Identity, site: string): string {
  return `${site}-preview-${hash16(`${instance} ${host}`).slice(0, 5)}`;
}

/** The name of a site's policy script in the site's network, formed like `insidePreviewName`. */
export function insidePolicyName({ instance, host }: Identity, site: string): string {
  return `${site}-policy-${hash16(`${instance} ${host}`).slice(0, 5)}`;
}

/** Parses a mark. A missing mark, or one of another instance or host, is foreign. */
export function readMark(
  identity: Identity,
  text: string | undefined | null,
): { owner: Ownership; hash: string | null } {
  const match = MARK.exec(text?.trim() ?? '');
  if (match === null)
    return {
      owner: { kind: 'foreign', by: text ? `"${text.slice(0, 100)}"` : 'an unknown owner (no mark)' },
      hash: null,
    };
  const [, instance = '', host = '', site = '', hash = ''] = match;
  if (instance !== identity.instance || host !== identity.host) {
    const by = `Tagyard instance ${instance} on host ${host}`;
    const sibling = instance === identity.instance ? { site } : {};
    return { owner: { kind: 'foreign', by, ...sibling }, hash: null };
  }
  return { owner: { kind: 'ours', site, host }, hash };
}
