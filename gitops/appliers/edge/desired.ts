import type { KvNamespace } from '../../../plugins/document.ts';
import { canonicalJson } from '../../base/canonical-json.ts';
import { contentHash } from '../../base/ownership.ts';
import { type DocumentSettings, type KvDocument, kvDocuments } from '../../manifest/documents.ts';
import type { Manifest } from '../../manifest/schema.ts';
import type { Resource } from '../contract.ts';

/** A KV pair as it is written: the document as canonical JSON. */
export interface KvSpec {
  readonly namespace: KvNamespace;
  readonly key: string;
  readonly value: string;
}

export interface RouteSpec {
  readonly pattern: string;
  readonly script: string;
}

/** A site's KV pairs, pure. */
export function desiredPairs(manifest: Manifest, settings: DocumentSettings): Resource<KvSpec>[] {
  return kvDocuments(manifest, settings).map(({ namespace, key, value }: KvDocument) => ({
    target: 'kv',
    site: manifest.site,
    key: pairKey(namespace, key),
    hash: contentHash({ namespace, key, value }),
    summary: [namespace, key].join(' '),
    adopt: manifest.adopt,
    spec: { namespace, key, value: canonicalJson(value) },
  }));
}

/** Joined, like the summary: V8 keeps a template's parts apart, with more than they hold for each. */
export function pairKey(namespace: KvNamespace, key: string): string {
  return [namespace, key].join('/');
}

/** The names in those keys that `pairKey` made for this namespace. */
export function namesIn(namespace: KvNamespace, keys: readonly string[]): Set<string> {
  const prefix = pairKey(namespace, '');
  return new Set(keys.flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length)] : [])));
}

/** The route that leads a pattern to the edge worker, pure. `pattern` is the site's own or the zone's wildcard. */
export function desiredRoute(manifest: Manifest, { pattern, script }: RouteSpec): Resource<RouteSpec> {
  return {
    target: 'route',
    site: manifest.site,
    key: pattern,
    hash: routeHash({ pattern, script }),
    summary: `${pattern} to ${script}`,
    adopt: manifest.adopt,
    spec: { pattern, script },
  };
}

export function routeHash({ pattern, script }: RouteSpec): string {
  return contentHash({ pattern, script });
}

/** `shop.example.net/*`: everything on the host, its query strings too. */
export function sitePattern(edgeHostname: string): string {
  return `${edgeHostname}/*`;
}

/** The host of a pattern that `sitePattern` makes, or `null`. */
export function patternHost(pattern: string): string | null {
  return /^([^*/]+)\/\*$/.exec(pattern)?.[1]?.toLowerCase() ?? null;
}

/** One route for every host directly or deeper under the zone. */
export function wildcardPattern(zone: string): string {
  return `*.${zone}/*`;
}
