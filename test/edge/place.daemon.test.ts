import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { NOWHERE, type Place, placeHeaders, statedPlace } from '../../edge/http/place.ts';
import type { Received } from '../../edge/kit/upstream.ts';
import { HOP_SECRET, type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';
import { vendorScript } from '../support/edge/upstream.ts';

const BERLIN: Place = { country: 'DE', region: 'BE' };
const CALIFORNIA: Place = { country: 'US', region: 'CA' };

/** Headers by which visitors may claim to be in another place. */
const CLAIMS = {
  'x-forwarded-country': 'FR',
  'x-forwarded-region': 'IDF',
  'x-forwarded-countryregion': 'FR-IDF',
  'x-gclb-country': 'FR',
  'x-gclb-region': 'FRIDF',
  'x-geo-country': 'FR',
  'x-geo-region': 'IDF',
  'x-geo-city': 'Paris',
  'x-appengine-country': 'FR',
  'x-tagyard-country': 'FR',
  'x-tagyard-region': 'IDF',
  'cf-ipcountry': 'FR',
  'cf-region-code': 'IDF',
};

/** The runtime reads `request.cf` from `mf-cf-blob`. On Cloudflare and the embedded front, clients can't send it. */
const asPeer = (cf: object) => ({ 'cf-connecting-ip': '203.0.113.7', 'mf-cf-blob': JSON.stringify(cf) });
const asPeerAt = ({ country, region }: Place) => asPeer({ country, regionCode: region });
/** The headers of a request through our proxy, which is in Finland. */
const throughProxyAt = ({ country, region }: Place) => ({
  ...asPeer({ country: 'FI', regionCode: '18' }),
  'x-tagyard-hop-secret': HOP_SECRET,
  'x-forwarded-for': '203.0.113.8',
  ...(country === null ? {} : { 'x-forwarded-country': country }),
  ...(region === null ? {} : { 'x-forwarded-region': region }),
});

describe('a stated place', () => {
  test.each<[name: string, country: unknown, region: unknown, place: Place]>([
    ['a country and a region', 'DE', 'BE', BERLIN],
    ['a region of digits', 'JP', '13', { country: 'JP', region: '13' }],
    ['in lower case', 'us', 'ca', CALIFORNIA],
    ['a country alone', 'DE', undefined, { country: 'DE', region: null }],
    ['an unknown region', 'DE', 'Berlin', { country: 'DE', region: null }],
    ['a region alone', null, 'CA', NOWHERE],
    ['an unknown country', 'XX', 'CA', NOWHERE],
    ['App Engine’s unknown country', 'ZZ', 'CA', NOWHERE],
    ['the Tor network', 'T1', undefined, NOWHERE],
    ['nothing', '', '', NOWHERE],
    ['a line break', 'D\r\nE', 7, NOWHERE],
    ['a list', 'DE, US', 'CA', NOWHERE],
  ])('%s is read as $3', (_name, country, region, place) => {
    expect(statedPlace(country, region)).toEqual(place);
  });
});

describe('the visitor’s place', () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await startStage();
  });
  beforeEach(async () => {
    stage.upstream.received.length = 0;
    stage.upstream.reply = () => ({});
    await stage.seen();
  });
  afterAll(() => stage?.close());

  const placesIn = ({ headers }: Received) =>
    Object.fromEntries(
      Object.entries(headers).filter(([name]) => /country|region|geo|gclb|city|appengine/.test(name)),
    );
  const known = (place: Place) =>
    Object.fromEntries(
      Object.entries({
        ...placeHeaders(place),
        // Only the gateway of a cluster reads these; it removes them.
        'x-tagyard-country': place.country,
        'x-tagyard-region': place.region,
      }).filter(([, value]) => value !== null),
    );

  test.each([
    ['what Cloudflare states of its peer', asPeerAt(BERLIN), BERLIN],
    ['what Cloudflare states, without a region', asPeer({ country: 'DE' }), { country: 'DE', region: null }],
    ['none if Cloudflare states none', asPeer({}), NOWHERE],
    ['none if what Cloudflare states is invalid', asPeer({ country: 'a\r\nb', regionCode: 7 }), NOWHERE],
    ['what our proxy states, never the proxy’s own place', throughProxyAt(CALIFORNIA), CALIFORNIA],
    ['none if our proxy states none, never the proxy’s own place', throughProxyAt(NOWHERE), NOWHERE],
    ['none if our proxy states nonsense', throughProxyAt({ country: 'Neverland', region: 'X' }), NOWHERE],
  ])('at the tag server and in the log: %s, whatever the visitor claims', async (_name, headers, place) => {
    const site = await stage.site();
    await stage.send(site.host, '/g/collect', { headers: { ...CLAIMS, ...headers, ...unclaimed(headers) } });
    expect(stage.upstream.received.map(placesIn)).toEqual([known(place)]);
    expect((await stage.seen()).records.map(({ country }) => country)).toEqual([place.country]);
  });

  test('is stated as Google’s load balancer does it, and by the names that templates use', () => {
    expect(placeHeaders(CALIFORNIA)).toEqual({
      'x-forwarded-country': 'US',
      'x-forwarded-region': 'CA',
      'x-gclb-country': 'US',
      'x-gclb-region': 'USCA',
      'x-geo-country': 'US',
      'x-geo-region': 'CA',
    });
  });

  const script = (site: StagedSite, headers: Record<string, string>, query = '') =>
    stage.send(site.host, `/c/${site.domains[0]?.token}.js${query}`, { headers });
  const asked = () =>
    stage.upstream.received.map(
      ({ headers }) => headers['x-forwarded-countryregion'] ?? headers['x-forwarded-country'] ?? 'unknown',
    );
  const byPlace = ({ headers }: Received) =>
    vendorScript(
      `place=${headers['x-forwarded-countryregion'] ?? headers['x-forwarded-country'] ?? 'unknown'}`,
    );

  test('a German and a US visitor each get their own script, fetched once for each place', async () => {
    const site = await stage.site();
    stage.upstream.reply = byPlace;
    const visitors = [
      [asPeerAt(BERLIN), 'place=DE-BE'],
      [asPeerAt(CALIFORNIA), 'place=US-CA'],
      [throughProxyAt(CALIFORNIA), 'place=US-CA'],
      [throughProxyAt(BERLIN), 'place=DE-BE'],
      [asPeer({ country: 'DE' }), 'place=DE'],
      [asPeer({}), 'place=unknown'],
      [throughProxyAt(NOWHERE), 'place=unknown'],
    ] as const;
    for (const round of [1, 2]) {
      for (const [headers, text] of visitors) {
        expect((await script(site, headers)).text, `round ${round}`).toBe(text);
      }
      expect(asked()).toEqual(['DE-BE', 'US-CA', 'DE', 'unknown']);
    }
    // Another isolate of the data centre, with an empty memory.
    await stage.restart();
    for (const [headers, text] of visitors) expect((await script(site, headers)).text).toBe(text);
    expect(asked()).toHaveLength(4);
  });

  test('simultaneous visitors of two places don’t get each other’s script', async () => {
    const site = await stage.site();
    stage.upstream.reply = byPlace;
    const places = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? BERLIN : CALIFORNIA));
    const answers = await Promise.all(places.map((place) => script(site, asPeerAt(place))));
    expect(answers.map(({ text }) => text)).toEqual(
      places.map(({ country, region }) => `place=${country}-${region}`),
    );
    expect(asked().sort()).toEqual(['DE-BE', 'US-CA']);
  });

  test('caches between edge and browser must not keep the script of a place', async () => {
    const site = await stage.site();
    stage.upstream.reply = byPlace;
    const scope = async (headers: Record<string, string>) =>
      String((await script(site, headers)).headers['cache-control']).split(',')[0];
    expect(await scope(asPeerAt(BERLIN))).toBe('private');
    expect(await scope(asPeer({}))).toBe('public');
  });

  test('no header or parameter of a visitor changes what others get', async () => {
    const site = await stage.site();
    stage.upstream.reply = (request) => {
      const { url, headers } = request;
      const claimed = Object.values(headers).some((value) => /FR\b|evil/.test(String(value)));
      return claimed || /evil/.test(url) ? vendorScript('poisoned') : byPlace(request);
    };
    const hostile = {
      ...CLAIMS,
      'x-forwarded-host': 'evil.example',
      'x-original-url': '/evil',
      'x-rewrite-url': '/evil',
      'user-agent': 'evil',
      cookie: 'evil=1',
      origin: 'https://evil.example',
      'accept-language': 'evil',
    };
    const queries = [
      '',
      '?id=GTM-EVIL&id=evil',
      '?l=dataLayer&l=evil',
      '?L=evil&place=evil',
      '?l=dataLayer%26id%3DGTM-EVIL',
      '?gtm_auth=evil&gtm_preview=evil',
      '?l=dataLayer#evil',
    ];
    for (const query of queries) await script(site, { ...hostile, ...asPeerAt(BERLIN) }, query);
    stage.upstream.received.length = 0;
    for (const query of ['', '?l=dataLayer']) {
      expect((await script(site, asPeerAt(BERLIN), query)).text).toBe('place=DE-BE');
    }
    expect(asked()).toEqual([]);
    expect((await script(site, asPeerAt(CALIFORNIA))).text).toBe('place=US-CA');
  });

  /** The proxy's own headers replace the visitor's: those that it doesn't state are empty, which counts as absent. */
  function unclaimed(headers: Readonly<Record<string, string>>): Record<string, string> {
    if (!('x-tagyard-hop-secret' in headers)) return {};
    return Object.fromEntries(
      ['x-forwarded-country', 'x-forwarded-region'].map((name) => [name, headers[name] ?? '']),
    );
  }
});
