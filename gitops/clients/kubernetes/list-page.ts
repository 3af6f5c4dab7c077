import type { SentObject } from './contract.ts';
import type { Kind } from './kinds.ts';
import { objectOf, parsed } from './object-text.ts';
import { parsedObject, sentObject } from './sent-object.ts';

interface ListPage {
  readonly items: readonly SentObject[];
  readonly resourceVersion: string;
  /** The token of the next page; empty: this is the last one. */
  readonly next: string;
}

const ITEMS = { from: '"items":[', to: ']}' } as const;
/** How the API server begins an item. Quotes in a string are escaped, so no string of an item contains this. */
const BEGINNING = /^\{(?:"kind":"\w+","apiVersion":"[\w./]+",)?"metadata":\{"name":"/;

/** The longest beginning has at most this many characters. */
const LONGEST = 200;

/**
 * A page of a listing; `null`: the text is no listing. Each item is parsed when it is first read, if it is written as
 * the API server writes it.
 */
export function pageOfList(text: string, kind: Kind): ListPage | null {
  const from = text.indexOf(ITEMS.from) + ITEMS.from.length;
  const to = text.lastIndexOf(ITEMS.to);
  const [beginning] = BEGINNING.exec(text.slice(from, from + LONGEST)) ?? [];
  if (from < ITEMS.from.length || to < from || beginning === undefined) return parsedPage(parsed(text), kind);
  const page = parsedPage(parsed(`${text.slice(0, from)}${text.slice(to)}`), kind);
  // The listing's own members come after its items, so the text that was found is in one of the items.
  if (page === null) return parsedPage(parsed(text), kind);
  const items: SentObject[] = [];
  for (let start = from; start < to; ) {
    const next = text.indexOf(`},${beginning}`, start);
    const end = next < 0 || next > to ? to : next + 1;
    items.push(sentObject(text.slice(start, end), kind));
    start = end + 1;
  }
  return { ...page, items };
}

function parsedPage(body: unknown, kind: Kind): ListPage | null {
  const page = body as {
    readonly items?: readonly unknown[] | null;
    readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  } | null;
  const { resourceVersion, continue: next = '' } = page?.metadata ?? {};
  if (typeof resourceVersion !== 'string') return null;
  const items = (page?.items ?? []).map((item) => parsedObject(objectOf(item, { kind })));
  return { items, resourceVersion, next };
}
