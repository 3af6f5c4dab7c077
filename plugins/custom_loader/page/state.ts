/** What `window.tagyard` shows a page: the one global name that the snippet, the loader and its parts share. */
export interface TagyardPage {
  /**
   * Where the web tag is: `pending` (asked the edge), `edge` (comes from the edge), `direct` (comes from the
   * vendor), `loaded` or `failed`. Absent until somebody has begun.
   */
  gtm?: 'pending' | 'edge' | 'direct' | 'loaded' | 'failed';
  /** The snippet's way out: loads the vendor's script, unless the web tag is on its way already. */
  direct?: () => void;
  /** `gtm.start` has been pushed: page views count once, wherever the web tag comes from in the end. */
  started?: boolean;
  /** Settled when the bootstrap is over; null where it failed. */
  booted?: Promise<BootAnswer | null>;
  session?: { id: string; isNew: boolean; expiresAt: string };
  profile?: { id: string; isNew: boolean } | null;
  /** Names of the cookies that the bootstrap gave back. */
  restored?: string[];
  /** Where the loader came from, and its token. */
  edge?: string;
  loader?: string;
  /** Consent that the page sets before the loader runs, by Google's names. */
  consent?: Record<string, 'granted' | 'denied'>;
}

export interface BootAnswer {
  container: { scriptUrl: string };
  profile: { id: string; isNew: boolean } | null;
  session: { id: string; isNew: boolean; expiresAt: string };
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
