/** `window.tagyard`, the only global name of the snippet, the loader and the other plugins' scripts. */
export interface TagyardPage {
  /**
   * The state of the web tag: `waiting` (for the visitor's choice, or for a prerendered page to be shown), `pending` (the
   * bootstrap runs), `edge` (loading from the edge), `direct` (loading from the vendor), `loaded` or `failed`. Missing
   * before the loader runs.
   */
  gtm?: 'waiting' | 'pending' | 'edge' | 'direct' | 'loaded' | 'failed';
  /** The snippet's fallback: loads the vendor's script, unless the web tag is already being loaded. */
  direct?: () => void;
  /** The fallback has run, or must not run; the loader unsets this when the fallback may run. */
  tried?: boolean;
  /** Adds a script without delaying the page's `load` event. Older snippets don't set it. */
  add?: (src: string, load: () => void, fail: () => void) => void;
  /** `gtm.start` has been pushed. It is pushed only once, whether the web tag comes from the edge or the vendor. */
  started?: boolean;
  /** Resolves to the answer of the bootstrap; null if it failed. A later choice replaces the promise by a new one. */
  booted?: Promise<BootAnswer | null>;
  /** Resolves to the session's first answer after analytics was allowed. */
  measured?: Promise<BootAnswer>;
  session?: { id: string; isNew: boolean; expiresAt: string };
  profile?: { id: string; isNew: boolean } | null;
  /** Names of the restored cookies. */
  restored?: string[];
  /** The base URL that the loader came from, and its token. */
  edge?: string;
  loader?: string;
  /** Set by the page before the loader runs: the visitor's choices. The snippet or the loader adds `update`. */
  consent?: Choices & { update?: (choices: unknown) => void };
  /** The arguments with which `consent.update` was called before the loader ran. */
  updates?: unknown[];
  /** The visitor's choices so far, from all sources. */
  choices?: Choices;
}

/** The visitor's choices, by Google's names of purposes. */
export interface Choices {
  analytics_storage?: 'granted' | 'denied';
  ad_storage?: 'granted' | 'denied';
  ad_user_data?: 'granted' | 'denied';
  ad_personalization?: 'granted' | 'denied';
}

export interface BootAnswer {
  container: { scriptUrl: string };
  profile: { id: string; isNew: boolean } | null;
  session: { id: string; isNew: boolean; expiresAt: string; token?: string };
  restoreCookies: {
    name: string;
    value: string;
    maxAge: number;
    domain: string | null;
    path: string;
    sameSite: string;
    secure: boolean;
  }[];
  /** Names of cookies that the visitor has denied and the edge no longer keeps. */
  deleteCookies?: string[];
}

declare global {
  interface Window {
    tagyard?: TagyardPage;
    dataLayer?: unknown[];
  }
}
