import { type ConsentRules, modeOf } from '../consent.ts';
import template from './page/loader.ts?page';

/** The compiled script, split at the placeholders for the site's values and for the visitor's place. */
const [head = '', between = '', tail = ''] = template.split(/TAGYARD_VALUES|TAGYARD_PLACE/);

/**
 * A site's values. `edge` is the edge's base URL without a slash at the end, `loader` the loader token, `cookies` the
 * names of the cookies to send, `keys` the names of those whose values the edge makes into its store's keys. `life`
 * is the lifetime of a visitor's id in seconds. `layer` and `query` are those of the page's own snippet, which has
 * already started the data layer.
 */
interface LoaderValues {
  readonly edge: string;
  readonly loader: string;
  readonly cookies: readonly string[];
  readonly keys: readonly string[];
  readonly life: number;
  readonly rules: ConsentRules;
  readonly layer?: string;
  /** The query of the web tag's script, with `?`; percent-encoded. */
  readonly query?: string;
}

/**
 * The loader for one site and a visitor's place (`DE`, `US-CA`, or empty), followed by the scripts of other plugins. Values
 * are inserted as JSON literals. An origin, a token, names and a query contain no character with another meaning in a
 * script than in JSON.
 */
export function renderLoader(
  { rules, keys, ...site }: LoaderValues,
  place: string,
  pageScripts: readonly string[],
): string {
  const values = {
    ...site,
    ...(keys.length > 0 && { keys }),
    strict: modeOf(rules) === 'required',
    basic: rules.consentMode === 'basic',
    vendor: rules.fallback === 'vendor',
    days: rules.maxDays,
  };
  return head + JSON.stringify(values) + between + JSON.stringify(place) + [tail, ...pageScripts].join('\n');
}
