import template from './page/loader.ts?page';

/** The free name in the compiled script that a site's values take the place of. */
const PLACEHOLDER = 'TAGYARD_VALUES';

const at = template.indexOf(PLACEHOLDER);
if (at === -1 || template.indexOf(PLACEHOLDER, at + 1) !== -1) {
  throw new Error(`the loader's template must name ${PLACEHOLDER} exactly once`);
}
const head = template.slice(0, at);
const tail = template.slice(at + PLACEHOLDER.length);

/** What the script of one site is told: the edge's base URL without a slash, its token, the cookies to send along. */
export interface LoaderValues {
  readonly edge: string;
  readonly loader: string;
  readonly cookies: readonly string[];
}

/** The loader for one site, and after it what other plugins add. Values stand in it as JSON literals only. */
export function renderLoader(values: LoaderValues, parts: readonly string[]): string {
  // U+2028 and U+2029 end a line in scripts older than ES2019, and `<` could begin a closing tag where a page inlines it.
  const literal = JSON.stringify(values).replace(
    /[<\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return [`${head}${literal}${tail}`, ...parts].join('\n');
}
