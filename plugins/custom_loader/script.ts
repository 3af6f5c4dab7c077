import template from './page/loader.ts?page';

/** Around the free name in the compiled script that a site's values take the place of. */
const [head, tail] = template.split('TAGYARD_VALUES');

/** What the script of one site is told: the edge's base URL without a slash, its token, the cookies to send along. */
export interface LoaderValues {
  readonly edge: string;
  readonly loader: string;
  readonly cookies: readonly string[];
}

/**
 * The loader for one site, and after it what other plugins add. Values stand in it as JSON literals only; an origin, a
 * token and names of cookies have nothing that means more in a script than in JSON.
 */
export function renderLoader(values: LoaderValues, parts: readonly string[]): string {
  return [`${head}${JSON.stringify(values)}${tail}`, ...parts].join('\n');
}
