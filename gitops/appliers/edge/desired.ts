import { canonicalJson } from '../../../base/canonical-json.ts';
import { contentHash } from '../../../base/ownership.ts';
import type { KvNamespace } from '../../../plugins/document.ts';
import { type DocumentSettings, type KvDocument, kvDocuments } from '../../../sites/manifest/documents.ts';
import type { Manifest } from '../../../sites/manifest/schema.ts';
import type { Resource, Traits } from '../contract.ts';

export const KV = { target: 'kv', isShared: true } as const satisfies Traits;
export const ROUTE = { target: 'route', isShared: true } as const satisfies Traits;

/** A KV pair to write: `value` is the document as canonical JSON. */
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
    target: KV.target,
    site: manifest.site,
    key: pairKey(namespace, key),
    hash: contentHash({ namespace, key, value }),
    summary: [namespace, key].join(' '),
    adopt: manifest.adopt,
    ...(namespace === 'ROUTES' ? { needsNames: true } : {}),
    spec: { namespace, key, value: canonicalJson(value) },
  }));
}

/** Made by `join`, like the summary: V8 keeps the parts of a template string apart, which takes more memory. */
export function pairKey(namespace: KvNamespace, key: string): string {
  return [namespace, key].join('/');
}

/** The names in those `pairKey`s that are of this namespace. */
export function namesIn(namespace: KvNamespace, keys: readonly string[]): Set<string> {
  const prefix = pairKey(namespace, '');
  return new Set(keys.flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length)] : [])));
}

/** The route from a pattern to the edge worker, pure. `pattern` is the site's own or the zone's wildcard. */
export function desiredRoute(manifest: Manifest, { pattern, script }: RouteSpec): Resource<RouteSpec> {
  return {
    target: ROUTE.target,
    site: manifest.site,
    key: pattern,
    hash: routeHash({ pattern, script }),
    summary: `${pattern} to ${script}`,
    adopt: manifest.adopt,
    needsNames: true,
    spec: { pattern, script },
  };
}

export function routeHash({ pattern, script }: RouteSpec): string {
  return contentHash({ pattern, script });
}

/** `shop.example.net/*`: everything on the host, with any query string. */
export function sitePattern(edgeHostname: string): string {
  return `${edgeHostname}/*`;
}

/** The host in a `sitePattern`; `null` for any other pattern. */
export function patternHost(pattern: string): string | null {
  return /^([^*/]+)\/\*$/.exec(pattern)?.[1]?.toLowerCase() ?? null;
}

/** Matches every host under the zone, at any depth. */
export function wildcardPattern(zone: string): string {
  return `*.${zone}/*`;
}
