import { describe, expect, test } from 'vitest';
import { leadsToWorker, matchRoute } from '../../../edge/front/route-patterns.ts';

describe('matchRoute', () => {
  test.each([
    ['shop.example.net/*', 'https://shop.example.net/a?b', true],
    ['https://shop.example.net/*', 'https://shop.example.net/', true],
    ['SHOP.example.net/*', 'https://shop.example.net:8787/', true],
    ['shop.example.net/*', 'https://other.example.net/', false],
    ['*.example.net/*', 'https://a.b.example.net/x', true],
    ['*.example.net/*', 'https://example.net/x', false],
    ['*example.net/*', 'https://myexample.net/x', true],
    ['shop.example.net', 'https://shop.example.net/', true],
    ['shop.example.net', 'https://shop.example.net/a', false],
    ['shop.example.net/a', 'https://shop.example.net/a?b', false],
    ['shop.example.net/a*', 'https://shop.example.net/ab?c', true],
    ['shop.example.net/A*', 'https://shop.example.net/ab', false],
  ])('%s matches %s: %s', (pattern, url, expected) => {
    expect(matchRoute([pattern], new URL(url))).toBe(expected);
  });
});

describe('leadsToWorker', () => {
  const url = new URL('https://shop.example.net/g/collect?v=2');
  test.each([
    [['shop.example.net/*'], [], true],
    [['shop.example.net/*'], ['shop.example.net/g/*'], false],
    [['shop.example.net/*'], ['shop.example.net/l/*'], true],
    [['*.example.net/*'], ['shop.example.net/*'], false],
    [['shop.example.net/*'], ['*.example.net/*'], true],
    [['shop.example.net/g/*'], ['shop.example.net/*'], true],
    [['shop.example.net/*'], ['https://shop.example.net/*'], false],
    [[], [], false],
  ])('of the routes %j beside %j: %s', (patterns, elsewhere, expected) => {
    expect(leadsToWorker(patterns, elsewhere, url)).toBe(expected);
  });
});
