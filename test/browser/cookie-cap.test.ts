import type { BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { safariVerdict } from '../../edge/verification/safari.ts';
import type { ManifestInput } from '../../sites/manifest/schema.ts';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { keepCookiesAsSafari } from '../support/browser/safari.ts';
import { type BrowserSite, type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { cookie, settled, state, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { startForwardedShop } from '../support/forwarders/shop.ts';

const DAY_MS = 86_400_000;
const MASTER = 'shop_visitor';
/** As the shop's own server makes it: 128 random bits. */
const RANDOM = '0f3c1be9a84d5276e0f1b7c2d6a95e38';
/** The id that Google's tag would make if it found none. */
const OTHER = 'GA1.1.2222222222.1700000000';
const PAGE_ADDRESS = '203.0.113.10';

const RULES = {
  'no restoration': { features: { cookie_restoration: false } },
  restoration: { features: { cookie_restoration: true } },
  'restoration by masterCookie': {
    features: { cookie_restoration: true },
    modules: { cookie_restoration: { masterCookie: MASTER } },
  },
} as const satisfies Record<string, Partial<ManifestInput>>;

/** The host that serves the tags, as DNS resolves it. */
const ADDRESSES = {
  'the edge hostname': { host: 'edge', addresses: ['192.0.2.1'] },
  'a custom domain at another address': { host: 'custom', addresses: ['198.51.100.20'] },
  'a custom domain that is a CNAME to another owner': { host: 'custom', alias: 'shop.example.net' },
  'a custom domain in the pages’ network': { host: 'custom', addresses: ['203.0.200.9'] },
  'a path of the pages’ own host': { host: 'page', addresses: [PAGE_ADDRESS] },
} as const;
type Address = keyof typeof ADDRESSES;
const FORWARDED = 'a path of the pages’ own host';

/** A shop whose tags come from one of `ADDRESSES`. */
interface Shop {
  readonly site: BrowserSite;
  readonly page: string;
  /** What the tags' addresses begin with: an origin, or a path of the page's host. */
  readonly base: string;
  /** Serves the page, with these headers of its own server. */
  show(headers?: Readonly<Record<string, string>>): void;
}

/** Why Safari caps the cookies that a host's answers set for pages of `page`. */
function verdictOf(page: string, host: string, address: Address) {
  const registrable = (name: string) => name.split('.').slice(-2).join('.');
  const name = (own: string, addresses: readonly string[], alias: string | null = null) => ({
    name: own,
    addresses: [...addresses],
    alias,
    registrable: registrable(own),
    aliasRegistrable: alias === null ? null : registrable(alias),
  });
  const tag = { addresses: [], alias: null, ...ADDRESSES[address] };
  return safariVerdict(name(page, [PAGE_ADDRESS]), name(host, tag.addresses, tag.alias));
}

describeWith(['chromium', 'nginx'], 'a browser that ends cookies after 7 days, as Safari does', () => {
  let stage: BrowserStage;
  let chromium: Visitors;
  const forwarded = new Map<object, Shop>();
  const closing: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    stage = await startBrowserStage();
    const hosts: Record<string, string> = {};
    for (const rules of Object.values(RULES)) {
      const { site, host, port, path, show, close } = await startForwardedShop(stage, 'nginx', {
        manifest: rules,
      });
      closing.push(close);
      hosts[host] = `127.0.0.1:${port}`;
      forwarded.set(rules, { site, page: host, base: path, show: (headers) => show('', headers) });
    }
    chromium = await startChromium({ ...stage.browser, hosts: { ...hosts, ...stage.browser.hosts } });
  });
  afterAll(async () => {
    await chromium?.close();
    for (const close of closing) await close();
    await stage?.close();
  });

  async function shopAt(address: Address, rules: Partial<ManifestInput>): Promise<Shop> {
    const own = address === FORWARDED ? forwarded.get(rules) : undefined;
    if (own !== undefined) return own;
    const site = await stage.site(rules);
    const base = ADDRESSES[address].host === 'edge' ? site.url.edge : site.url.custom;
    const show: Shop['show'] = (headers = {}) => stage.serve('/', site.snippet({ edgeUrl: base }), headers);
    return { site, page: new URL(site.url.shop).hostname, base, show };
  }

  /** One page view, with the actions of its loaded tags. Returns the ids by which the visitor is recognised. */
  async function view(browser: BrowserContext, { site, page: host, base }: Shop, analytics: string) {
    const { page, errors } = await visit(browser, `https://${host}/`);
    expect((await settled(page))?.gtm).toBe('loaded');
    const { domain } = site.manifest.domains[0] ?? {};
    // Google's tag keeps the id that it finds. It sends a hit, whose answer sets an id that scripts don't see.
    await page.evaluate(`/_ga=/.test(document.cookie) ||
      (document.cookie = '_ga=${analytics}; Path=/; Max-Age=63072000; Domain=${domain}')`);
    await page.evaluate(`fetch('${base}/g/collect?v=2', { method: 'POST', mode: 'no-cors', credentials: 'include' })
      .then(() => undefined)`);
    expect(errors).toEqual([]);
    // Nothing may depend on `localStorage`: Safari would delete it with the cookies.
    expect(await page.evaluate('localStorage.length')).toBe(0);
    const { profile, session } = (await state(page)) ?? {};
    return {
      profile,
      session,
      analytics: (await cookie(browser, '_ga'))?.value,
      server: (await cookie(browser, 'FPID'))?.value,
    };
  }

  /** Advances the store's clock: moves back the times in its records, which are the numbers above 1e12. */
  async function passInStore({ manifest }: BrowserSite, days: number): Promise<void> {
    const { COOKIES } = stage.edge.kv;
    for (const { name, expiration = 0 } of (await COOKIES.list({ prefix: `${manifest.site}:` })).keys) {
      const record: unknown = JSON.parse((await COOKIES.get(name)) ?? 'null', (_key, value) =>
        typeof value === 'number' && value > 1e12 ? value - days * DAY_MS : value,
      );
      await COOKIES.put(name, JSON.stringify(record), { expiration: expiration - (days * DAY_MS) / 1000 });
    }
  }

  /** A visitor's views of a shop, in a browser that keeps cookies as Safari does. `pass` advances all clocks. */
  async function visitorOf(browser: BrowserContext, address: Address, rules: keyof typeof RULES) {
    const shop = await shopAt(address, RULES[rules]);
    const safari = await keepCookiesAsSafari(
      browser,
      (host) => verdictOf(shop.page, host, host === shop.page ? FORWARDED : address) !== null,
    );
    const { domain } = shop.site.manifest.domains[0] ?? {};
    shop.show({ 'set-cookie': `${MASTER}=${RANDOM}; Domain=${domain}; Path=/; Max-Age=34560000; Secure` });
    const first = await view(browser, shop, 'GA1.1.1111111111.1700000000');
    shop.show();
    /** The next view, compared with the first. */
    async function next() {
      const { profile, session, analytics, server } = await view(browser, shop, OTHER);
      expect(profile?.isNew).toBe(profile?.id !== first.profile?.id);
      return {
        session: session?.isNew === false,
        id: profile?.id === first.profile?.id,
        analytics: analytics === first.analytics,
        server: server !== undefined && server === first.server,
      };
    }
    return {
      next,
      async pass(days: number) {
        await safari.pass(days);
        await passInStore(shop.site, days);
      },
    };
  }

  const LOST = { session: false, id: false, analytics: false, server: false };
  const RESTORED = { ...LOST, analytics: true, server: true };
  const LIVES = { ...LOST, id: true, server: true };
  const ALL = { ...LIVES, analytics: true };

  test.each<[Address, keyof typeof RULES, typeof LOST]>([
    ['the edge hostname', 'no restoration', LOST],
    ['the edge hostname', 'restoration', LOST],
    // The browser refuses the tag server's id there, so it is not kept.
    ['the edge hostname', 'restoration by masterCookie', { ...LOST, analytics: true }],
    ['a custom domain at another address', 'no restoration', LOST],
    ['a custom domain at another address', 'restoration', LOST],
    ['a custom domain at another address', 'restoration by masterCookie', RESTORED],
    ['a custom domain that is a CNAME to another owner', 'no restoration', LOST],
    ['a custom domain in the pages’ network', 'no restoration', LIVES],
    [FORWARDED, 'no restoration', LIVES],
    [FORWARDED, 'restoration', ALL],
    [FORWARDED, 'restoration by masterCookie', ALL],
  ])('keeps only the expected ids until day 8: %s, %s', async (address, rules, expected) => {
    await using browser = await chromium.newContext();
    const { next, pass } = await visitorOf(browser, address, rules);
    const isServed = ADDRESSES[address].host !== 'edge';
    expect(await next()).toEqual({ ...ALL, session: true, server: isServed });
    await pass(8);
    expect(await next()).toEqual(expected);
  });

  test('a visit on day 5 extends the tag server’s id, but not the visitor’s or the tag’s', async () => {
    await using browser = await chromium.newContext();
    const { next, pass } = await visitorOf(browser, 'a custom domain at another address', 'no restoration');
    await pass(5);
    expect(await next()).toEqual(ALL);
    await pass(3);
    expect(await next()).toEqual({ ...LOST, server: true });
  });
});
