import type { PluginContext } from '../../plugins/contract.ts';
import type { PLACE_HEADERS } from './request-headers.ts';

/** Where the visitor is. A region without its country means nothing, so it is unknown, too. */
export type Place = Pick<PluginContext['visitor'], 'country' | 'region' | 'city'>;

export const NOWHERE: Place = { country: null, region: null };

const COUNTRY = /^[A-Z]{2}$/;
const REGION = /^[A-Z0-9]{1,3}$/;
const MAX_CITY = 100;
/** What Cloudflare and databases write for an unknown country. */
const UNKNOWN_COUNTRIES = /^(?:XX|ZZ)$/;

/** The place that a trusted hop states. What can't be a code of ISO 3166 counts as unknown. */
export function statedPlace(country: unknown, region: unknown): Place {
  const known = (value: unknown, code: RegExp) =>
    typeof value === 'string' && code.test(value.toUpperCase()) ? value.toUpperCase() : null;
  const found = known(country, COUNTRY);
  if (found === null || UNKNOWN_COUNTRIES.test(found)) return NOWHERE;
  return { country: found, region: known(region, REGION) };
}

/** The place of Cloudflare's peer: the visitor's, if no proxy is in between. */
export function cloudflarePlace(cf: object = {}): Place {
  const { country, regionCode, city }: Readonly<Record<string, unknown>> = { ...cf };
  const place = statedPlace(country, regionCode);
  if (place.country === null || typeof city !== 'string' || city.length > MAX_CITY) return place;
  return { ...place, city };
}

/**
 * The place in the headers that a tag server reads (docs/facts.md, Tag server image, Place): those of Google's load
 * balancer, whose region is a Unicode subdivision id such as `USCA`, and the names that templates commonly use.
 */
export function placeHeaders({
  country,
  region,
}: Place): Record<(typeof PLACE_HEADERS)[number], string | null> {
  return {
    'x-forwarded-country': country,
    'x-forwarded-region': region,
    'x-gclb-country': country,
    'x-gclb-region': region === null ? null : `${country}${region}`,
    'x-geo-country': country,
    'x-geo-region': region,
  };
}
