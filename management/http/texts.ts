import { z } from 'zod';

/** The content of an answer that isn't JSON: a description, and an example as the API sends it. */
interface Text {
  readonly description: string;
  readonly example: string;
}

const BEATS = 'lines that begin with a colon keep the connection open';

/** A stream of server-sent events. */
export function eventStream({ description, example }: Text) {
  return {
    'text/event-stream': { schema: textSchema({ description: `${description}; ${BEATS}`, example }) },
  };
}

/** All rows that match, as lines of JSON or as CSV. */
export function exportTexts(what: string, examples: { readonly ndjson: string; readonly csv: string }) {
  const ndjson = { description: `${what}, each as a line of JSON`, example: examples.ndjson };
  const csv = { description: `${what} (RFC 4180), after a line of column names`, example: examples.csv };
  return {
    'application/x-ndjson': { schema: textSchema(ndjson) },
    'text/csv': { schema: textSchema(csv) },
  };
}

/** An answer that is JSON unless the request asks for one of these texts. */
export function jsonOr<Json extends z.ZodType, Texts extends object>(json: Json, texts: Texts) {
  const description = 'JSON, or the text that the request asks for';
  return { description, content: { 'application/json': { schema: json }, ...texts } };
}

function textSchema({ description, example }: Text) {
  return z.string().meta({ description, examples: [example] });
}
