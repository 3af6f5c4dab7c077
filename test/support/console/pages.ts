import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { eventually } from '../eventually.ts';

interface AxeResults {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

declare const axe: { run(): Promise<AxeResults> };

/** What axe finds on the page as it is now. The page's browser context has loaded axe-core into it. */
export async function findingsOf(page: Page): Promise<string[]> {
  const { violations } = await page.evaluate(() => axe.run());
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

/** The addresses of all screens of a person; `container` and `client` are ids. */
export function screensOf(container: string, client: string): string[] {
  return [
    '/console',
    '/console/containers',
    '/console/containers/new',
    ...['', '/domains', '/traffic', '/settings', '/history'].map(
      (tab) => `/console/containers/${container}${tab}`,
    ),
    `/console/containers/${container}/setup`,
    `/console/containers/${container}/requests?view=live`,
    `/console/containers/${container}/output`,
    '/console/requests',
    '/console/usage',
    '/console/changes',
    '/console/clients',
    `/console/clients/${client}`,
    '/console/organisations',
    '/console/tokens',
    '/console/webhooks',
    '/console/audit',
    '/console/nowhere',
  ];
}

/** The screens that only operators have. */
export const OPERATORS_SCREENS = [
  '/console/plans',
  '/console/drift',
  '/console/hosts',
  '/console/rollouts',
  '/console/rollouts/new',
];

/** How many finite animations still run: what fades in has other colours until its animation ends. */
const MOVING = `document.getAnimations().filter(({ playState, effect }) =>
  playState === 'running' && effect.getComputedTiming().endTime !== Infinity).length`;

/** Resolves when the page shows its data: no skeleton is there any more, and nothing moves. */
export async function settled(page: Page): Promise<void> {
  await page.locator('h1').waitFor();
  await eventually(async () => expect(await page.locator('.skeleton').count()).toBe(0));
  await eventually(async () => expect(await page.evaluate<number>(MOVING)).toBe(0));
}

/** Holds the next request to this address until the function that is returned is called. */
export async function heldOnce(page: Page, url: string): Promise<() => void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  await page.route(
    url,
    async (route) => {
      await promise;
      await route.continue();
    },
    { times: 1 },
  );
  return resolve;
}
