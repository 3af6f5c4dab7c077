import type { FastifyRequest } from 'fastify';

const COUNTRY = /^[A-Z]{2}$/;
/** ISO 3166-2: the country and the region in it. */
const COUNTRY_REGION = /^[A-Z]{2}-[A-Z0-9]{1,3}$/;

/**
 * The visitor's place as a server in front states it (docs/facts.md, Tag gateway): by the combined header, by country
 * and region, or by the country alone. `US-CA` or `US`; `null`: unknown.
 */
export function placeInHeaders({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  const { 'x-forwarded-country': country, 'x-forwarded-region': region } = headers;
  const combined = headers['x-forwarded-countryregion'] ?? `${country}-${region}`;
  if (COUNTRY_REGION.test(String(combined))) return String(combined);
  const alone = String(headers['x-forwarded-countryregion'] ?? country);
  return COUNTRY.test(alone) ? alone : null;
}
