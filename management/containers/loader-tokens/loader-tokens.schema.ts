import { z } from 'zod';

const token = z
  .object({
    id: z.string(),
    value: z.string().meta({ description: 'the beginning and the end of the token' }),
    current: z.boolean().meta({ description: 'true: the token that snippets have' }),
    until: z.iso
      .date()
      .nullable()
      .meta({ description: 'accepted before this date (UTC), not on it; null: the current one' }),
  })
  .meta({ id: 'LoaderToken' });

export const loaderTokens = z.object({
  items: z.array(token),
  next: z.null().meta({ description: 'there is one page' }),
});
export type LoaderTokens = z.output<typeof loaderTokens>;

export const loaderTokenParams = z.strictObject({
  id: z.uuid(),
  token: z
    .string()
    .regex(/^(?:[0-9a-f]{16}|lt_[A-Za-z0-9]{16,64})$/)
    .meta({ description: 'the `id` of a token, or the token' }),
});
