import { z } from 'zod';

export const sessionView = z
  .object({
    subject: z.string().meta({ description: 'the `sub` that memberships name' }),
    name: z.string(),
    email: z.string(),
    isOperator: z.boolean().meta({ description: 'whether the subject is one of SUPER_ADMINS' }),
    csrfToken: z
      .string()
      .meta({ description: 'the token that each request for a change sends as `x-csrf-token`' }),
    endsAt: z.iso.datetime().meta({ description: 'when the session ends if it is not used before' }),
  })
  .meta({ id: 'Session' });

export const loggedOut = z
  .object({
    logoutUrl: z
      .url()
      .nullable()
      .meta({ description: 'where the browser ends its login at the provider; `null`: nowhere' }),
  })
  .meta({ id: 'LoggedOut' });

/** A path of this origin. With a backslash, or a second slash at its start, it could lead to another origin. */
const ownPath = z
  .string()
  .max(2_000)
  .regex(/^\/(?![/\\])[\x21-\x7e]*$/, 'must be a path of this origin')
  .refine((path) => !path.includes('\\'), 'must be a path of this origin');

export const loginQuery = z.strictObject({
  returnTo: ownPath.default('/docs/'),
  hint: z.string().max(255).optional(),
});
export const logoutForm = z.looseObject({ logout_token: z.string().max(8_192) });

/** The cookie of a login that has begun. */
export const attemptCookie = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  returnTo: ownPath,
});
