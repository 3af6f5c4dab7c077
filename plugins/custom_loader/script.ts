import template from './page/loader.ts?page';

/** The compiled script before and after the placeholder for the site's values. */
const [head, tail] = template.split('TAGYARD_VALUES');

/**
 * A site's values: the edge's base URL without a slash, the loader token, the cookies to send. `layer` and `query` are
 * those of the page's own snippet, which has started the data layer already.
 */
interface LoaderValues {
  readonly edge: string;
  readonly loader: string;
  readonly cookies: readonly string[];
  readonly layer?: string;
  /** Of the web tag's script, with `?`; percent-encoded. */
  readonly query?: string;
}

/**
 * The loader for one site, followed by the scripts of other plugins. Values are inserted as JSON literals. An origin, a
 * token, names and a query contain no character that means more in a script than in JSON.
 */
export function renderLoader(values: LoaderValues, parts: readonly string[]): string {
  return [`${head}${JSON.stringify(values)}${tail}`, ...parts].join('\n');
}
