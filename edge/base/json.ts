import type * as z from 'zod/mini';

/** Parses JSON; returns `undefined`, which isn't a JSON value, if the text isn't JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Why a schema refused a value, as one line for the log. Contains nothing of the value. */
export const reasonOf = ({ issues }: z.core.$ZodError): string =>
  issues.map(({ message }) => message).join('; ');
