import { describe, expect, test } from 'vitest';
import { missingSources, neededPolicy } from '../../../edge/verification/content-security-policy.ts';

const BASE = 'https://www.acme.example/m3trics1';
const PAGE = new URL('https://www.acme.example/');
const VENDOR = 'https://www.googletagmanager.com';

const missing = (...policies: string[]) => missingSources(policies, BASE, PAGE);
const ALL = [
  `script-src ${BASE}/`,
  `script-src ${VENDOR}`,
  `connect-src ${BASE}/`,
  `connect-src ${VENDOR}`,
  `img-src ${BASE}/`,
  `img-src ${VENDOR}`,
  `frame-src ${BASE}/`,
  `frame-src ${VENDOR}`,
];

describe('the needed policy', () => {
  test('names the prefix with all below it, and the vendor', () => {
    const sources = `${BASE}/ ${VENDOR}`;
    expect(neededPolicy(BASE)).toBe(
      `script-src ${sources}; connect-src ${sources}; img-src ${sources}; frame-src ${sources}`,
    );
    expect(neededPolicy('https://metrics.acme.example')).toContain(
      `script-src https://metrics.acme.example ${VENDOR};`,
    );
  });

  test('of a prefix that several hosts have is enough on each of them', () => {
    const policy = neededPolicy(['https://acme.example/m3trics1', 'https://*.acme.example/m3trics1']);
    for (const base of [BASE, 'https://acme.example/m3trics1', 'https://de.shop.acme.example/m3trics1']) {
      expect(missingSources([policy], base, PAGE)).toEqual([]);
    }
    expect(missingSources([policy], 'https://evilacme.example/m3trics1', PAGE)).not.toEqual([]);
  });

  test.each([
    BASE,
    'https://metrics.acme.example',
    'https://metrics.acme.example:8443',
    'http://shop.localhost:8787/m3trics1',
  ])('is enough for %s itself', (base) => {
    expect(missingSources([neededPolicy(base)], base, PAGE)).toEqual([]);
  });
});

describe('a page’s policy', () => {
  test.each([
    ['none of our directives', "object-src 'none'; base-uri 'self'", []],
    ['no directive at all', '', []],
    ['everything', 'default-src *', []],
    ['every secure address', 'default-src https:', []],
    ['every address, named http', 'default-src http:', []],
    ['a default of none', "default-src 'none'", ALL],
    ['only the page’s origin', "default-src 'self'", ALL.filter((source) => source.endsWith(VENDOR))],
    ['upper case', `DEFAULT-SRC 'SELF' HTTPS://WWW.GOOGLETAGMANAGER.COM`, []],
    ['the vendor by a wildcard', "default-src 'self' *.googletagmanager.com", []],
    [
      'a wildcard, which doesn’t include its own domain',
      "default-src 'self' *.www.googletagmanager.com",
      ALL.filter((source) => source.endsWith(VENDOR)),
    ],
    [
      'a name with the same ending',
      "default-src 'self' https://evil-www.googletagmanager.com",
      ALL.filter((source) => source.endsWith(VENDOR)),
    ],
    [
      'one file only',
      `default-src ${BASE}/l/other.js ${VENDOR}`,
      ALL.filter((source) => source.endsWith('/')),
    ],
    [
      'the prefix without what is below',
      `default-src ${BASE} ${VENDOR}`,
      ALL.filter((source) => source.endsWith('/')),
    ],
    ['another port', `default-src 'self' ${VENDOR}:8443`, ALL.filter((source) => source.endsWith(VENDOR))],
    ['any port', `default-src 'self' ${VENDOR}:*`, []],
    ['the port written out', `default-src 'self' ${VENDOR}:443`, []],
    ['hosts without a scheme', 'default-src www.acme.example www.googletagmanager.com', []],
    ['scripts by nonce', `default-src 'self' ${VENDOR}; script-src 'nonce-abc'`, []],
    [
      'scripts by nonce alone, with strict-dynamic',
      `default-src 'self' ${VENDOR}; script-src 'nonce-abc' 'strict-dynamic'`,
      [],
    ],
    [
      'strict-dynamic with hosts, which it disables',
      `default-src 'self' ${VENDOR}; script-src 'self' ${VENDOR} 'strict-dynamic'`,
      ALL.slice(0, 2),
    ],
    [
      'script elements by a directive of their own',
      `default-src 'self' ${VENDOR}; script-src-elem 'none'`,
      ALL.slice(0, 2),
    ],
    ['frames by child-src', `default-src 'self' ${VENDOR}; child-src 'self'`, [`frame-src ${VENDOR}`]],
    ['the first of two directives', `img-src 'self' ${VENDOR}; img-src 'none'`, []],
  ])('that has %s lacks $2', (_what, policy, expected) => {
    expect(missing(policy)).toEqual(expected);
  });

  test('counts together with every other one, in one header or several', () => {
    expect(missing('default-src *', "img-src 'none'")).toEqual([`img-src ${BASE}/`, `img-src ${VENDOR}`]);
    expect(missing("default-src *, img-src 'none'")).toEqual([`img-src ${BASE}/`, `img-src ${VENDOR}`]);
  });
});
