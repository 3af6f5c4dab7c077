/** `window.tagyard`, the only global name of the snippet, the loader and the other plugins' scripts. */
export interface TagyardPage {
  /**
   * The state of the web tag: `pending` (the bootstrap runs), `edge` (loading from the edge), `direct` (loading from the
   * vendor), `loaded` or `failed`. Missing before the loader runs.
   */
  gtm?: 'pending' | 'edge' | 'direct' | 'loaded' | 'failed';
  /** The snippet's fallback: loads the vendor's script, unless the web tag is already being loaded. */
  direct?: () => void;
  /** Adds a script without delaying the page's `load` event. Older snippets don't set it. */
  add?: (src: string, load: () => void, fail: () => void) => void;
  /** `gtm.start` has been pushed. It is pushed once, whichever server the web tag comes from. */
  started?: boolean;
  /** Resolves to the answer of the bootstrap; null if it failed. */
  booted?: Promise<BootAnswer | null>;
  session?: { id: string; isNew: boolean; expiresAt: string };
  profile?: { id: string; isNew: boolean } | null;
  /** Names of the restored cookies. */
  restored?: string[];
  /** The base URL that the loader came from, and its token. */
  edge?: string;
  loader?: string;
  /** Set by the page before the loader runs: the visitor's consent, by Google's names. */
  consent?: Record<string, 'granted' | 'denied'>;
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
}

declare global {
  interface Window {
    tagyard?: TagyardPage;
    dataLayer?: unknown[];
  }
}
