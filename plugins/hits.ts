/** A hit of one of Google's protocols. */
const GOOGLE_HIT = /\/(?:[gjr]|g\/s|mp)\/collect$/;
/** Debug sessions and the service worker: nothing of them is a hit. */
const NO_HIT = /^\/(?:gtm|_)(?:\/|$)/;

/** Whether a request that is passed on to the tag server carries a visitor's data, and isn't for a script. */
export function isHit({ method }: Request, { pathname }: URL): boolean {
  return GOOGLE_HIT.test(pathname) || (method === 'POST' && !NO_HIT.test(pathname));
}
