import type { BrowserContext, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { TagyardPage } from '../../../plugins/custom_loader/page/state.ts';
import { eventually } from '../eventually.ts';

/** An opened page with its requests and errors. */
interface Visit {
  readonly page: Page;
  /** URLs of all requests of the page. */
  readonly asked: string[];
  /** Uncaught errors of the page's scripts. */
  readonly errors: string[];
}

export async function visit(browser: BrowserContext, url: string): Promise<Visit> {
  const page = await browser.newPage();
  const asked: string[] = [];
  const errors: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  page.on('pageerror', (error) => errors.push(error.message));
  // Not `load`, which waits for scripts that some tests hold. Chromium aborts running requests when a network interface
  // of the machine appears or disappears, as those of containers do.
  await eventually(() => page.goto(url, { waitUntil: 'domcontentloaded' }), {
    until: (error) => !String(error).includes('ERR_NETWORK_CHANGED'),
  });
  return { page, asked, errors };
}

/** The serializable members of `window.tagyard`. */
export function state(page: Page): Promise<Omit<TagyardPage, 'direct' | 'booted'> | undefined> {
  return page.evaluate('window.tagyard && JSON.parse(JSON.stringify({ ...tagyard, booted: undefined }))');
}

/** Waits until the web tag has loaded or failed, and returns the page's state. */
export async function settled(page: Page) {
  return await eventually(async () => {
    const now = await state(page);
    expect(now?.gtm).toMatch(/^(?:loaded|failed)$/);
    return now;
  });
}

/** Waits for the bootstrap's answer. */
export function booted(page: Page): Promise<{ profile: { id: string; isNew: boolean } | null } | null> {
  return page.evaluate('window.tagyard.booted');
}

/** The number of started page views, and the containers that ran. */
export async function ran(page: Page) {
  const starts: number = await page.evaluate(
    `(window.dataLayer || []).filter(({ event }) => event === 'gtm.js').length`,
  );
  const containers: string[] = await page.evaluate('Object.keys(window.google_tag_manager || {})');
  return { starts, containers };
}

export async function cookie(browser: BrowserContext, name: string) {
  return (await browser.cookies()).find((each) => each.name === name);
}
