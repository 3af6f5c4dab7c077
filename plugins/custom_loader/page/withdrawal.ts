import { ADS_COOKIE, ANALYTICS_COOKIE } from '../../purposes.ts';
import type { Decision } from './consent.ts';
import { drop, pickCookies, store, stored } from './jar.ts';

/**
 * The name of an item in the page's storage: it exists after a withdrawal until the edge has received it. Its text: the
 * id to forget, or `-` for none.
 */
const ITEM = 'tagyard.forget';

/** The item's text, in case the browser forbids storage. */
let item = '';

/**
 * The id that the edge must forget. `-`: no id, only what is kept under the values of other cookies. Empty: nothing.
 */
export const toForget = () => item || stored(ITEM);

function keep(text: string): void {
  item = text;
  store(ITEM, text);
}
export const remember = (id?: string) => keep(id || toForget() || '-');
export const forgotten = () => keep('');

/** Deletes the page's cookies of these names (see `pickCookies`) whose purpose the visitor refuses. `keys` stay. */
export function deleteRefused(names: string[], keys: string[] = [], refuses: Decision['refuses']): void {
  const isRefused = (name: string) =>
    (refuses.analytics && ANALYTICS_COOKIE.test(name)) || (refuses.ads && ADS_COOKIE.test(name));
  drop(Object.keys(pickCookies(names)).filter((name) => isRefused(name) && keys.indexOf(name) < 0));
}
