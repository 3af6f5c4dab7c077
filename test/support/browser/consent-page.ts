import type { BrowserContext, Page, Request } from 'playwright-core';
import { expect } from 'vitest';
import { mayForbidVendor } from '../../../sites/manifest/consent.ts';
import type { ManifestInput } from '../../../sites/manifest/schema.ts';
import { eventually } from '../eventually.ts';
import type { BrowserSite, BrowserStage } from './stage.ts';
import { state, visit } from './visit.ts';

/** A request of a page to the site's edge hosts. */
interface Sent {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests read any body and assert on it.
  readonly body: any;
}

export interface ConsentVisit {
  readonly page: Page;
  readonly errors: readonly string[];
  /** The page's requests to the edge so far, in order; only those whose path begins with `prefix`. */
  sent(prefix?: string): Promise<Sent[]>;
  /** All URLs that the page requested from other hosts than its own and the edge's. */
  others(): string[];
}

interface ConsentShop {
  readonly site: BrowserSite;
  /** The shop's registrable domain, as cookies name it. */
  readonly domain: string;
  /** Opens a page of the shop. `head`: what its head has before the snippet; `path`: with the query. */
  open(browser: BrowserContext, head?: string, path?: string): Promise<ConsentVisit>;
}

/** Defines `gtag` as every documentation of Consent Mode does. */
const GTAG = 'window.dataLayer=window.dataLayer||[];function gtag(){dataLayer.push(arguments)}';

/** A script element that runs commands of Consent Mode before the snippet. */
export const gtag = (commands: string) => `<script>${GTAG};${commands}</script>`;

export const ALL_DENIED = `{ad_storage:'denied',ad_user_data:'denied',ad_personalization:'denied',analytics_storage:'denied'}`;
export const ALL_GRANTED = ALL_DENIED.replaceAll('denied', 'granted');
export const DEFAULT_DENIED = gtag(`gtag('consent','default',${ALL_DENIED})`);

/** A site with these members of its manifest, whose pages have the snippet that management makes for them. */
export async function consentShop(
  stage: BrowserStage,
  manifest: Partial<ManifestInput> = {},
  host: 'edge' | 'custom' = 'edge',
): Promise<ConsentShop> {
  const site = await stage.site({ features: { cookie_restoration: true }, ...manifest });
  const waits = mayForbidVendor(site.manifest);
  return {
    site,
    domain: `.${site.manifest.domains[0]?.domain}`,
    async open(browser, head = '', path = '/') {
      const { pathname } = new URL(path, site.url.shop);
      stage.serve(pathname, head + site.snippet({ edgeUrl: site.url[host], waits }));
      const requests: Request[] = [];
      const onRequest = (request: Request) => requests.push(request);
      browser.on('request', onRequest);
      const { page, errors } = await visit(browser, site.url.shop + path);
      const own = [site.url.edge, site.url.custom];
      const ofEdge = () => requests.filter((one) => own.includes(new URL(one.url()).origin));
      return {
        page,
        errors,
        sent: (prefix = '/') =>
          Promise.all(
            ofEdge()
              .filter((one) => new URL(one.url()).pathname.startsWith(prefix))
              .map(async (one) => ({
                path: new URL(one.url()).pathname,
                headers: await one.allHeaders(),
                body: one.postDataJSON() ?? null,
              })),
          ),
        others: () =>
          requests
            .map((one) => one.url())
            .filter((url) => ![...own, site.url.shop].includes(new URL(url).origin)),
      };
    },
  };
}

/** What a consent platform does when the visitor has chosen. */
export async function updateConsent({ page }: ConsentVisit, choices: string): Promise<void> {
  await page.evaluate(`gtag('consent','update',${choices})`);
}

/** Waits until the page has a profile; returns its id. */
export async function identified({ page }: ConsentVisit): Promise<string> {
  return await eventually(async () => {
    const id = (await state(page))?.profile?.id;
    expect(id).toBeDefined();
    return String(id);
  });
}
