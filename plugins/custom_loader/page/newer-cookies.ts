import type { BootAnswer } from './state.ts';

type Restored = BootAnswer['restoreCookies'][number];
type Change = Event & { readonly changed: readonly { readonly name: string; readonly value?: string }[] };

/** Not in all browsers. */
const { cookieStore } = window as unknown as { cookieStore?: EventTarget };

/**
 * Records what the page's scripts write while the bootstrap is under way: its `Set-Cookie` may replace a newer value. The
 * function that it returns ends that, and gives the newer value of a restored cookie.
 */
export function watchCookies(): (cookie: Restored) => string | undefined {
  const changes: { readonly name: string; readonly value?: string }[] = [];
  const note = (event: Event) => {
    changes.push(...(event as Change).changed);
  };
  if (cookieStore) cookieStore.addEventListener('change', note);
  return ({ name, value }) => {
    if (cookieStore) cookieStore.removeEventListener('change', note);
    let newer: string | undefined;
    for (const change of changes) if (change.name === name && change.value !== value) newer = change.value;
    return newer;
  };
}
