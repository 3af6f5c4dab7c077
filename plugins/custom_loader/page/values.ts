/** Placeholders: rendering the script for a site and a visitor's place replaces them. */
declare const TAGYARD_VALUES: {
  edge: string;
  loader: string;
  cookies: string[];
  /** Those of `cookies` from whose values the edge derives keys of its store. */
  keys?: string[];
  /** The lifetime of a visitor's id, in seconds. */
  life: number;
  /** Only a grant allows anything. */
  strict: boolean;
  /** Nothing loads before a grant. */
  basic: boolean;
  /** The page may load the vendor's script directly. */
  vendor: boolean;
  /** Days after which a consent counts as none. */
  days: number;
  /** The name of the data layer in the page's own snippet, which has already started that data layer. */
  layer?: string;
  /** The query of the web tag's script, with `?`. */
  query?: string;
};
declare const TAGYARD_PLACE: string;

export const values = TAGYARD_VALUES;
/** `DE` or `US-CA`; empty if it is unknown. */
export const place = TAGYARD_PLACE;
