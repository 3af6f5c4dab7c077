import type { BootAnswer } from './state.ts';

type Restored = BootAnswer['restoreCookies'][number];
type Change = Event & { readonly changed: readonly { readonly name: string; readonly value?: string }[] };

const { cookieStore } = window as unknown as { cookieStore?: EventTarget };

/** The listener stays as long as the page is open, so the list needs a limit. Changes after the bootstrap aren't needed. */
const MAX_CHANGES = 50;

/**
 * Records the cookies that the page's scripts write while the bootstrap is under way, because its `Set-Cookie` may
 * replace a newer value. Returns a function that gives the newer value of a restored cookie.
 */
export function watchCookies(): (cookie: Restored) => string | undefined {
  const changes: { readonly name: string; readonly value?: string }[] = [];
  try {
    // Not all browsers have `cookieStore`, and pages may have a substitute without events.
    (cookieStore as EventTarget).addEventListener('change', (event) => {
      if (changes.length < MAX_CHANGES) changes.push(...(event as Change).changed);
    });
  } catch {}
  return ({ name, value }) => {
    let newer: string | undefined;
    for (const change of changes) if (change.name === name && change.value !== value) newer = change.value;
    return newer;
  };
}
