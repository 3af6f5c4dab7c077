import { describe, expect, test } from 'vitest';
import { allowedOrigin, allowOrigin, preflight } from '../../../edge/http/cors.ts';
import type { Site } from '../../../plugins/contract.ts';

const site: Site = {
  siteId: 'shop',
  containerId: '3f0a6679-7425-40de-944b-e07fc1f90000',
  edgeHost: 'shop.edge.test',
  domains: [
    { domain: 'acme.example', webTagId: 'GTM-ABC1234', token: 'ct_a', cookieDomain: null, active: true },
  ],
  proxyPaths: [],
  dataLayers: [],
};
const from = (origin: string | null) =>
  allowedOrigin(new Request('https://shop.edge.test/', { headers: origin === null ? {} : { origin } }), site);

describe('allowedOrigin', () => {
  test.each(['https://acme.example', 'http://www.acme.example:8080'])('allows %s', (origin) => {
    expect(from(origin)).toBe(origin);
  });

  test('is null where the request names no origin', () => {
    expect(from(null)).toBeNull();
  });

  test.each([
    'null',
    'https://evil.example',
    'https://evilacme.example',
    'https://acme.example/',
    'https://acme.example@evil.example',
    'chrome-extension://acme.example',
    'acme.example',
    '',
  ])('refuses "%s", and the refusal varies by origin', (origin) => {
    expect(() => from(origin)).toThrow(
      expect.objectContaining({ code: 'origin_not_allowed', options: { headers: { vary: 'origin' } } }),
    );
  });
});

describe('allowOrigin', () => {
  test.each([
    [
      'https://acme.example',
      {
        vary: 'accept, origin',
        'access-control-allow-origin': 'https://acme.example',
        'access-control-allow-credentials': 'true',
      },
    ],
    [null, { vary: 'accept, origin' }],
  ])('with the origin %s makes the headers $1', (origin, expected) => {
    const headers = new Headers({ vary: 'accept' });
    allowOrigin(headers, origin);
    expect(Object.fromEntries(headers)).toEqual(expected);
  });
});

test('a preflight lists the methods', () => {
  expect(preflight(['GET', 'HEAD']).headers.get('access-control-allow-methods')).toBe('GET, HEAD');
});
