import { z } from 'zod';

/** Schemas of values that environment variables hold. */

/** An empty variable counts as unset. */
export const optionalText = z
  .string()
  .transform((text) => (text === '' ? undefined : text))
  .optional();

export const portNumber = z.coerce.number().int().min(0).max(65535);

/** `a, b`: comma-separated, without empty parts. */
export const textList = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);

/** A limit of a provider, as a number of things. */
export const quotaSetting = z.coerce.number<string | undefined>().int().positive();

/** `Name <address>`, as git writes a person. */
export const personSetting = z.string().transform((text, context) => {
  const [, name = '', email = ''] = /^([^<>]*[^<>\s]) <([^<>\s]+)>$/.exec(text) ?? [];
  if (name === '') context.addIssue('must be of the form `Name <address>`');
  return { name, email };
});
