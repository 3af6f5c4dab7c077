import type * as z from 'zod/mini';

/** The value that a JSON text stands for; `undefined`, which no text does, where it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Why a value was refused, in a line for the log; it holds nothing of the value. */
export const reasonOf = ({ issues }: z.core.$ZodError): string =>
  issues.map(({ message }) => message).join('; ');
