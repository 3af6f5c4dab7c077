import { type ConsentRules, modeOf } from '../consent.ts';
import template from './page/loader.ts?page';

/** The compiled script before and after the placeholder for the site's values. */
const [head = '', between = '', tail = ''] = template.split(/TAGYARD_VALUES|TAGYARD_PLACE/);

/**
 * A site's values: the edge's base URL without a slash, the loader token, the cookies to send, those of them by which the
 * edge finds what is kept, the life of an id in seconds, and the rules of consent. `layer` and `query` are those of the
 * page's own snippet, which has started the data layer already.
 */
interface LoaderValues {
  readonly edge: string;
  readonly loader: string;
  readonly cookies: readonly string[];
  readonly keys: readonly string[];
  readonly life: number;
  readonly rules: ConsentRules;
  readonly layer?: string;
  /** Of the web tag's script, with `?`; percent-encoded. */
  readonly query?: string;
}

/**
 * The loader for one site, before and after the literal of the visitor's place, and followed by the scripts of other
 * plugins. Values are inserted as JSON literals. An origin, a token, names and a query contain no character that means
 * more in a script than in JSON.
 */
export function renderLoader(
  { rules, keys, ...site }: LoaderValues,
  parts: readonly string[],
): readonly [string, string] {
  const values = {
    ...site,
    ...(keys.length > 0 && { keys }),
    strict: modeOf(rules) === 'required',
    basic: rules.consentMode === 'basic',
    vendor: rules.fallback === 'vendor',
    days: rules.maxDays,
  };
  return [head + JSON.stringify(values) + between, [tail, ...parts].join('\n')];
}
