import { readFileSync } from 'node:fs';
import handlebars from 'handlebars';
import type { Product } from './catalogue.ts';

/** A file of the page folder as text. */
export function readPageFile(name: string): string {
  return readFileSync(new URL(`./page/${name}`, import.meta.url), 'utf8');
}

/** What a page shows. `snippet` is HTML and goes in as it is; all else is escaped. */
export interface PageModel {
  readonly title: string;
  readonly nonce: string;
  /** `null` while nobody knows it. */
  readonly edgeUrl: string | null;
  readonly snippet: string;
  /** Why there is no snippet, for the panel. */
  readonly trouble: string | null;
  readonly products: readonly Product[];
  /** The one product of its page. */
  readonly product?: Product;
  /** The page found nothing at its address. */
  readonly lost?: true;
}

const environment = handlebars.create();
environment.registerHelper('is', (a: unknown, b: unknown) => a === b);
for (const partial of ['drawing', 'home', 'product', 'panel']) {
  environment.registerPartial(partial, readPageFile(`${partial}.hbs`));
}

export const renderPage: (model: PageModel) => string = environment.compile(readPageFile('page.hbs'));
