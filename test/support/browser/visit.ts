import type { BrowserContext, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { TagyardPage } from '../../../plugins/custom_loader/page/state.ts';
import { eventually } from '../eventually.ts';

/** A page that was opened, with what it asked for and what went wrong in it. */
export interface Visit {
  readonly page: Page;
  /** Addresses that the page and what it loaded asked for. */
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
  // Not `load`: that waits for scripts, and some tests hold them back. Chromium drops what is under way when one of
  // the machine's interfaces comes or goes, as those of containers do.
  await eventually(() => page.goto(url, { waitUntil: 'domcontentloaded' }), {
    until: (error) => !String(error).includes('ERR_NETWORK_CHANGED'),
  });
  return { page, asked, errors };
}

/** What `window.tagyard` says, as far as it can leave the page. */
export function state(page: Page): Promise<Omit<TagyardPage, 'direct' | 'booted'> | undefined> {
  return page.evaluate('window.tagyard && JSON.parse(JSON.stringify({ ...tagyard, booted: undefined }))');
}

/** Waits until the web tag has come, one way or the other, and answers its state. */
export async function settled(page: Page) {
  return await eventually(async () => {
    const now = await state(page);
    expect(now?.gtm).toMatch(/^(?:loaded|failed)$/);
    return now;
  });
}

/** The bootstrap's answer, once it is there. */
export function booted(page: Page): Promise<{ profile: { id: string; isNew: boolean } | null } | null> {
  return page.evaluate('window.tagyard.booted');
}

/** How often the page view began, and which containers ran. */
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
