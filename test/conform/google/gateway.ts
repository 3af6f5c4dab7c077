import { equal, match, ok } from 'node:assert/strict';
import type { Behaviour } from '../behaviour.ts';
import { NotTried } from '../not-tried.ts';
import type { GoogleTarget } from './target.ts';

const SOURCE = 'Tag gateway';
/** The measurement path: one segment of letters and digits. */
const PATH = '/m3trics1';
const PLACES: readonly Readonly<Record<string, string>>[] = [
  { 'x-forwarded-countryregion': 'US-CA' },
  { 'x-forwarded-country': 'DE', 'x-forwarded-region': 'BY' },
];

async function get(
  { gateway, containerId }: GoogleTarget,
  path: string,
  headers: Readonly<Record<string, string>> = {},
) {
  if (gateway === undefined) throw new NotTried('name a tag gateway: --gateway <address>');
  const response = await fetch(new URL(path, gateway(containerId)), { headers, redirect: 'manual' });
  return { status: response.status, headers: response.headers, text: (await response.text()).trim() };
}

export const gatewayBehaviours: readonly Behaviour<GoogleTarget>[] = [
  {
    name: 'the gateway is healthy under a path of letters and digits',
    source: SOURCE,
    async check(target) {
      const { status, text } = await get(target, `${PATH}/healthy`);
      equal(status, 200);
      equal(text, 'ok');
    },
  },
  {
    name: 'the gateway confirms the visitor’s place, stated in one header or in two',
    source: SOURCE,
    async check(target) {
      for (const place of PLACES) {
        const { status, text } = await get(target, `${PATH}/?validate_geo=healthy`, place);
        equal(`${status} ${text}`, '200 ok', JSON.stringify(place));
      }
    },
  },
  {
    name: 'the gateway’s script is that of the container in its hostname, with or without an id in the query',
    source: SOURCE,
    async check(target) {
      for (const query of ['', `?id=${target.containerId}`]) {
        const { status, headers, text } = await get(target, `${PATH}/${query}`, PLACES[0]);
        equal(status, 200);
        match(headers.get('content-type') ?? '', /\bjavascript\b/);
        equal(headers.get('cache-control'), 'private, max-age=900');
        ok(text.includes(target.containerId), 'the container is not named');
      }
    },
  },
  {
    name: 'the gateway’s script names the path to which its own requests go',
    source: SOURCE,
    async check(target) {
      const { text } = await get(target, `${PATH}/`, PLACES[0]);
      ok(text.includes(PATH), `${PATH} is not named`);
    },
  },
  {
    name: 'the gateway has no script without the slash after its path',
    source: SOURCE,
    async check(target) {
      equal((await get(target, PATH, PLACES[0])).status, 404);
    },
  },
];
