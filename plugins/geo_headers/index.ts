import { definePlugin } from '../contract.ts';
import { config } from './config.ts';

/** Tells the tag server the visitor's city. Country and region are always told. */
export default definePlugin({
  name: 'geo_headers',
  kind: 'optional',
  flag: 'geo_headers',
  config,
  routes: [],
  async before(_request, { visitor, tellTagServer, count }, { forwards }) {
    if (!forwards) return undefined;
    count(visitor.city === undefined ? 'unknown' : 'told');
    if (visitor.city === undefined) return undefined;
    // A header holds no other characters safely: `M%C3%BCnchen`.
    const city = visitor.city.replaceAll(/[^\x20-\x7e]|%/gu, encodeURIComponent);
    tellTagServer({ headers: { 'x-geo-city': city } });
    return undefined;
  },
});
