import { expect } from 'vitest';
import { eventually } from '../eventually.ts';
import type { ConsentVisit } from './consent-page.ts';
import type { BrowserSite } from './stage.ts';
import { state } from './visit.ts';

export const GA = 'GA1.1.1111111111.1700000000';
/** A page whose address names the visitor's click. */
export const LANDING = '/landing?gclid=SECRET-CLICK';
export const GRANTED = {
  analytics_storage: 'granted',
  ad_storage: 'granted',
  ad_user_data: 'granted',
  ad_personalization: 'granted',
};
const DENIED = { analytics_storage: 'denied', ad_storage: 'denied' };
export const MODES = {
  basic: { consent: 'required', consentMode: 'basic' },
  advanced: { consent: 'opt_out', consentMode: 'advanced' },
} as const;
export type Mode = keyof typeof MODES;

export const isState = (at: ConsentVisit, gtm: string) =>
  eventually(async () => expect((await state(at.page))?.gtm).toBe(gtm));

/** The first segments of the paths that the page has requested from the edge, in order. */
export const sentKinds = async (at: ConsentVisit) => (await at.sent()).map(({ path }) => path.split('/')[1]);

/** Expects that the page's requests name neither the visitor nor the page's path, and that the edge keeps nothing. */
export async function expectNothingKnown(at: ConsentVisit, mode: Mode, site: BrowserSite) {
  const { manifest, url } = site;
  await isState(at, mode === 'basic' ? 'waiting' : 'loaded');
  const sent = await at.sent();
  expect(await sentKinds(at)).toEqual(mode === 'basic' ? ['l'] : ['l', 'boot', 'c']);
  expect(at.others()).toEqual([]);
  const boot = { loader: manifest.loaderToken, url: url.shop, consent: DENIED };
  expect((await at.sent('/boot')).map(({ body }) => body)).toEqual(mode === 'basic' ? [] : [boot]);
  for (const { headers } of sent) {
    expect(headers).not.toHaveProperty('cookie');
    // Chromium states an empty referrer for what it takes from its cache.
    expect(headers.referer ?? '').toBe('');
  }
  expect(JSON.stringify(sent)).not.toMatch(/SECRET-CLICK|GA1\.1/);
  expect((await state(at.page))?.profile ?? null).toBeNull();
  expect(await site.profiles()).toEqual([]);
}

/** Expects that the page's last bootstrap had the visitor's choices and cookies, and that the edge has the cookies. */
export async function expectKnown(at: ConsentVisit, site: BrowserSite) {
  const { profile, choices } = (await state(at.page)) ?? {};
  expect(choices).toEqual(GRANTED);
  const boots = await at.sent('/boot');
  expect(boots.at(-1)?.body).toMatchObject({ url: site.url.shop, consent: GRANTED, cookies: { _ga: GA } });
  expect(JSON.stringify(boots)).not.toContain('SECRET-CLICK');
  await eventually(async () =>
    expect(await site.profile(profile?.id)).toMatchObject({ cookies: [{ name: '_ga', value: GA }] }),
  );
}

/** Expects that page, browser and edge have nothing of the visitor any more. */
export async function expectForgotten(at: ConsentVisit, site: BrowserSite, id: string) {
  await eventually(async () => expect((await state(at.page))?.profile).toBeNull());
  expect(await site.profile(id)).toBeNull();
  expect(await at.page.context().cookies()).toEqual([]);
  expect(at.errors).toEqual([]);
}
