import template from './page/loader.ts?page';

/** The compiled script before and after the placeholder for the site's values. */
const [head, tail] = template.split('TAGYARD_VALUES');

/** A site's values: the edge's base URL without a slash, the loader token, the cookies to send, the life of an id in seconds. */
interface LoaderValues {
  readonly edge: string;
  readonly loader: string;
  readonly cookies: readonly string[];
  readonly life: number;
}

/**
 * The loader for one site, followed by the scripts of other plugins. Values are inserted as JSON literals. An origin, a
 * token and cookie names contain no character that means more in a script than in JSON.
 */
export function renderLoader(values: LoaderValues, parts: readonly string[]): string {
  return [`${head}${JSON.stringify(values)}${tail}`, ...parts].join('\n');
}
