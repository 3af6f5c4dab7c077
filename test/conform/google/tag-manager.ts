import { deepEqual, equal, match, ok } from 'node:assert/strict';
import type { Behaviour } from '../behaviour.ts';
import type { GoogleTarget } from './target.ts';

const SCRIPT = 'Web container script';
/** An id of the right form that no container has. */
const UNKNOWN = 'GTM-UNKNOWN0';

interface Fetched {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** `path` is relative to the address of Tag Manager. */
async function get(
  { tagManager }: GoogleTarget,
  path: string,
  headers: Record<string, string> = {},
): Promise<Fetched> {
  const response = await fetch(new URL(path, tagManager), { headers, redirect: 'manual' });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const isScript = ({ headers }: Fetched) => /\bjavascript\b/.test(headers.get('content-type') ?? '');

export const tagManagerBehaviours: readonly Behaviour<GoogleTarget>[] = [
  {
    name: 'gtm.js is a script that any page may load and that private caches keep for 15 minutes; it sets no cookie',
    source: SCRIPT,
    async check(target) {
      const { status, headers } = await get(target, `/gtm.js?id=${target.containerId}`);
      const sent = (name: string) => headers.get(name);
      equal(status, 200);
      match(sent('content-type') ?? '', /^application\/javascript; charset=utf-8$/i);
      equal(sent('cache-control'), 'private, max-age=900');
      equal(sent('access-control-allow-origin'), '*');
      equal(sent('cross-origin-resource-policy'), 'cross-origin');
      match(sent('vary') ?? '', /accept-encoding/i);
      equal(sent('server'), 'Google Tag Manager');
      deepEqual(headers.getSetCookie(), []);
    },
  },
  {
    name: 'gtm.js is compressed if the request accepts that',
    source: SCRIPT,
    async check(target) {
      const { headers } = await get(target, `/gtm.js?id=${target.containerId}`, {
        'accept-encoding': 'gzip, br',
      });
      match(headers.get('content-encoding') ?? 'none', /^(?:gzip|br)$/);
    },
  },
  {
    name: 'gtm.js of an unknown or malformed id, or without one, is an error and no script',
    source: SCRIPT,
    async check(target) {
      for (const query of [`?id=${UNKNOWN}`, `?id=${target.containerId.toLowerCase()}`, '']) {
        const fetched = await get(target, `/gtm.js${query}`);
        ok(fetched.status >= 400 && fetched.status < 500, `${query} answers ${fetched.status}`);
        ok(!isScript(fetched), `${query} answers a script`);
      }
    },
  },
  {
    name: 'gtm.js names its container, and the data layer that the parameter `l` names',
    source: SCRIPT,
    async check(target) {
      const { text } = await get(target, `/gtm.js?id=${target.containerId}&l=tagyardLayer`);
      ok(text.includes(target.containerId), 'the container is not named');
      ok(text.includes('tagyardLayer'), 'the data layer is not named');
    },
  },
  {
    name: 'gtm.js depends on the place in X-Forwarded-CountryRegion, not on the requester’s address',
    source: SCRIPT,
    async check(target) {
      const at = async (place: string) => {
        const headers = { 'x-forwarded-countryregion': place };
        return (await get(target, `/gtm.js?id=${target.containerId}`, headers)).text;
      };
      const [german, again, american] = [await at('DE-BE'), await at('DE-BE'), await at('US-CA')];
      equal(german, again, 'one place has two scripts');
      ok(german !== american, 'DE-BE and US-CA have the same script');
    },
  },
  {
    name: 'gtm.js loads further scripts from Tag Manager’s own host, whatever host served gtm.js',
    source: SCRIPT,
    async check(target) {
      const { text } = await get(target, `/gtm.js?id=${target.containerId}`, {
        referer: 'https://www.acme.example/',
        'x-forwarded-host': 'www.acme.example',
      });
      ok(text.includes(target.tagManager.host), `${target.tagManager.host} is not named`);
      ok(text.includes('/gtag/js'), '/gtag/js is not named');
      ok(!text.includes('www.acme.example'), 'the page’s host is named');
    },
  },
  {
    name: 'gtag/js is a script for a web container’s id, too, and an error without an id',
    source: SCRIPT,
    async check(target) {
      const found = await get(target, `/gtag/js?id=${target.containerId}&l=dataLayer&cx=c`);
      deepEqual([found.status, isScript(found)], [200, true]);
      const none = await get(target, '/gtag/js');
      ok(none.status >= 400 && !isScript(none), `without an id it answers ${none.status}`);
    },
  },
  {
    name: 'ns.html is a page for a known container',
    source: SCRIPT,
    async check(target) {
      const { status, headers } = await get(target, `/ns.html?id=${target.containerId}`);
      equal(status, 200);
      match(headers.get('content-type') ?? '', /^text\/html/i);
    },
  },
];
