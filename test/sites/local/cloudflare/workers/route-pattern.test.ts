import { expect, test } from 'vitest';
import { patternFault } from '../../../../../sites/local/cloudflare/workers/route-pattern.ts';

test.each([
  'example.net/*',
  'shop.example.net/*',
  'https://shop.example.net/l/*',
  '*.example.net/*',
  '*example.net/*',
  'shop.example.net',
])('the zone accepts the route pattern %s', (pattern) => {
  expect(patternFault(pattern, 'example.net')).toBeNull();
});

test.each([
  ['shop.example.net/*?x=1', 'must not contain a query'],
  ['shop.example.net/a b', 'must not contain a query'],
  ['shop.example.net/*/x', '* is allowed at the end only'],
  ['shop.*.example.net/*', '* is allowed at the start only'],
  ['shop.example.net:8080/*', 'host of the pattern is invalid'],
  ['shop.example.org/*', 'must be in the zone example.net'],
  ['notexample.net/*', 'must be in the zone example.net'],
])('the zone rejects the route pattern %s', (pattern, fault) => {
  expect(patternFault(pattern, 'example.net')).toContain(fault);
});
