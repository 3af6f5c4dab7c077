import { expect, test } from 'vitest';
import { excuseFor } from './excuse.ts';

test.each([
  'Error: getaddrinfo EAI_AGAIN www.googletagmanager.com',
  'starting\n  FetchError: request failed, reason: connect ECONNREFUSED 142.250.0.1:443\n at x',
  "{ code: 'UND_ERR_CONNECT_TIMEOUT' }",
])('a failure to reach Google is no evidence against the image: %j', (output) => {
  expect(excuseFor(output, { isMadeUp: false })).toMatch(/^the container can't reach Google: \S.*\S$/);
});

const refused = 'Request to https://www.googletagmanager.com/server.js?id=GTM-A failed with status 403';

test('Google’s refusal of a made-up container is no evidence against the image', () => {
  expect(excuseFor(refused, { isMadeUp: true })).toMatch(/^set CONFORM_CONTAINER_CONFIG/);
});

test.each([
  [refused, false],
  ['Missing or invalid container config parameter: id', true],
  ['TypeError: undefined is not a function', true],
  ['', true],
])('any other failure is not excused: %j', (output, isMadeUp) => {
  expect(excuseFor(output, { isMadeUp })).toBe(null);
});
