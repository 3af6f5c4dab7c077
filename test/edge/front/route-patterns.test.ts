import { describe, expect, test } from 'vitest';
import { matchRoute } from '../../../edge/front/route-patterns.ts';

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
