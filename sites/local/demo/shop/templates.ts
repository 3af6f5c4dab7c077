import { readFileSync } from 'node:fs';
import handlebars from 'handlebars';
import type { Product } from './catalogue.ts';

/** The text of a file in `page/`. */
export function readPageFile(name: string): string {
  return readFileSync(new URL(`./page/${name}`, import.meta.url), 'utf8');
}

/** The data of a page. `snippet` is HTML and inserted unescaped; everything else is escaped. */
export interface PageModel {
  readonly title: string;
  readonly nonce: string;
  /** `null` until the demo site exists. */
  readonly edgeUrl: string | null;
  readonly snippet: string;
  /** The demo site's page in the console. */
  readonly consoleUrl?: string | undefined;
  /** The visitor has blocked the edge: the page's policy keeps the browser from it. */
  readonly isBlocked: boolean;
  /** Why there is no snippet, for the panel. */
  readonly problem: string | null;
  readonly products: readonly Product[];
  /** The product of a product page. */
  readonly product?: Product;
  /** The address names no page. */
  readonly isMissing?: true;
}

const environment = handlebars.create();
environment.registerHelper('is', (a: unknown, b: unknown) => a === b);
for (const partial of ['drawing', 'home', 'product', 'panel', 'switches']) {
  environment.registerPartial(partial, readPageFile(`${partial}.hbs`));
}

export const renderPage: (model: PageModel) => string = environment.compile(readPageFile('page.hbs'));
