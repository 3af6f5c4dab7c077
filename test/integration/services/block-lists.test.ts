import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { FiltersEngine, Request } from '@ghostery/adblocker';
import { beforeAll, describe, expect, test } from 'vitest';
import { blockedPath, HOST_RULES, SEGMENT_RULES } from '../../../edge/verification/block-lists.ts';
import { neutralId } from '../../../management/containers/names/neutral-name.ts';
import { needsSuffix, withSuffix } from '../../../management/containers/names/site-id.ts';
import { newPath } from '../../../management/containers/same-origin.ts';
import { BLOCK_LISTS, describeWith } from '../../support/components.ts';

type Kind = 'script' | 'xmlhttprequest' | 'ping' | 'sub_frame' | 'main_frame';
type Address = readonly [kind: Kind, path: string];

/** What pages request of Tagyard itself. */
const OURS: readonly Address[] = [
  ['script', '/l/lt_4QkYb7pXw2ZrT9mN.js'],
  ['xmlhttprequest', '/boot'],
  ['script', '/c/ct_v8Hd2LqPz6SfJ1cA.js'],
  ['script', '/c/ct_v8Hd2LqPz6SfJ1cA.js?l=layer2'],
  ['script', '/c/ct_v8Hd2LqPz6SfJ1cA.js?gtm_auth=a&gtm_preview=env-3&gtm_cookies_win=x'],
  ['xmlhttprequest', '/mark-session-detection'],
  ['sub_frame', '/_/service_worker/56k0/sw_iframe.html?origin=https%3A%2F%2Fwww.acme.example'],
  ['main_frame', '/gtm/debug?id=GTM-ABC1234&gtm_auth=x&gtm_preview=env-3'],
  ['xmlhttprequest', '/gtm/get_memo'],
  ['xmlhttprequest', '/g/collect'],
];

/** What Google's tags request: EasyPrivacy matches it by its path or query, on every host. */
const GOOGLES: readonly Address[] = [
  ['script', '/gtm.js?id=GTM-ABC1234'],
  ['script', '/gtag/js?id=G-ABC1234&l=dataLayer&cx=c&gtm=45He4'],
  ['script', '/gtag/destination?id=AW-1234567&l=dataLayer&cx=c&gtm=45He4'],
  ['sub_frame', '/ns.html?id=GTM-ABC1234'],
  ['xmlhttprequest', '/g/collect?v=2&tid=G-ABC1234&gtm=45he4&en=page_view'],
  ['ping', '/g/collect?v=2&tid=G-ABC1234&gtm=45he4&en=page_view'],
];

/** The bait that detects blockers: it must be blocked. */
const BAIT: Address = [
  'xmlhttprequest',
  '/mark-session-detection?bait=/bait/gtm.js?v=1&ad_type=banner&to=/mark-session-detection',
];

/** Labels whose rules are newer than the lists of a stable Debian, with the rule's text. */
const RECENT = new Map([['ssgtm', '://ssgtm.']]);

const PAGE = 'https://www.acme.example/';
const inZone = (label: string) => `${label}.example.net`;
const inOwnDomain = (label: string) => `${label}.acme.example`;

describeWith('blocklists', 'EasyList and EasyPrivacy', () => {
  const engines = new Map<string, FiltersEngine>();
  let texts = '';
  beforeAll(() => {
    for (const list of ['EasyList', 'EasyPrivacy']) {
      const text = readFileSync(`${BLOCK_LISTS}/${list.toLowerCase()}.txt`, 'utf8');
      engines.set(list, FiltersEngine.parse(text, { enableOptimizations: false }));
      texts += text;
    }
  });

  /** The lists that block an address of a host for a page of acme.example. */
  const blockedBy = (host: string, [type, path]: Address): string[] => {
    const request = Request.fromRawDetails({ url: `https://${host}${path}`, sourceUrl: PAGE, type });
    return [...engines].filter(([, engine]) => engine.match(request).match).map(([list]) => list);
  };
  /** The lists that block at least one of our own addresses. */
  const anyBlockedBy = (host: string) => new Set(OURS.flatMap((address) => blockedBy(host, address)));

  describe.each([
    ['in our zone', inZone],
    ['under the client’s own domain', inOwnDomain],
  ])('a neutral name %s', (_where, hostOf) => {
    test.each(OURS)('%s %s is blocked by no list', (...address) => {
      expect(blockedBy(hostOf('acme-shop'), address)).toEqual([]);
      expect(blockedPath(address[1])).toBeNull();
    });
    test.each(GOOGLES)('%s %s is blocked by EasyPrivacy, as `blockedPath` says', (...address) => {
      expect(blockedBy(hostOf('acme-shop'), address)).toEqual(['EasyPrivacy']);
      expect(blockedPath(address[1])).toBe('EasyPrivacy');
    });
    test('the bait is blocked', () => {
      expect(blockedBy(hostOf('acme-shop'), BAIT)).toContain('EasyPrivacy');
    });
  });

  test('a beacon to our zone is blocked by EasyPrivacy, under the client’s own domain it isn’t', () => {
    expect(blockedBy(inZone('acme-shop'), ['ping', '/g/collect'])).toEqual(['EasyPrivacy']);
    expect(blockedBy(inOwnDomain('acme-shop'), ['ping', '/g/collect'])).toEqual([]);
  });

  test.each(SEGMENT_RULES)('$list blocks the path /$segment on every host', ({ list, segment }) => {
    const below = OURS.map(([kind, path]): Address => [kind, `/${segment}${path}`]);
    expect(below.flatMap((address) => blockedBy(inOwnDomain('www'), address))).toContain(list);
  });

  test('generated paths are blocked by no list', () => {
    const below = Array.from({ length: 50 }, () => newPath(randomBytes)).flatMap((prefix) =>
      OURS.map(([kind, path]): Address => [kind, prefix + path]),
    );
    expect(below.filter((address) => blockedBy(inOwnDomain('www'), address).length > 0)).toEqual([]);
  });

  const rules = HOST_RULES.map((rule) => ({ ...rule, example: rule.label.replace('*', 'acme') }));
  test.each(rules)('$list blocks the label $label', ({ list, label, example, foreignOnly }) => {
    const recent = RECENT.get(label);
    if (recent !== undefined && !texts.includes(recent)) return;
    expect(anyBlockedBy(inZone(example))).toContain(list);
    expect(anyBlockedBy(inOwnDomain(example)).has(list)).toBe(!foreignOnly);
  });

  test.each(rules)('a site named $example gets an id that no list blocks', ({ example }) => {
    const base = neutralId({ name: example, domains: ['acme.example'] }, ZONE);
    const id = needsSuffix(base, ZONE.host) ? withSuffix(base) : base;
    expect([...anyBlockedBy(inZone(id))]).toEqual([]);
  });
});

const ZONE = { host: 'tag-1', edgeDomain: 'example.net' };
