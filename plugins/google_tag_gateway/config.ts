import * as z from 'zod/mini';

/** Paths of the form that the edge or Google answers itself. */
const TAKEN = ['/static', '/healthy', '/healthz'];

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
  /** The measurement path: its own, beside the domain's `sameOrigin.path` and the tag server's paths. */
  path: z.string().check(
    z.regex(/^\/[A-Za-z0-9]{6,10}$/, 'must be a slash and 6 to 10 letters or digits'),
    z.refine((path) => !TAKEN.includes(path), 'is a path of the edge itself'),
  ),
  /** The tag whose gateway answers. Without it: the web container of the domain. */
  tagId: z.optional(z.string().check(z.regex(/^(?:GTM|G|GT|AW)-[A-Z0-9]{4,20}$/, 'is not a tag id'))),
  /** Google gets the visitor's address; else only country and region. */
  visitorAddress: z._default(z.boolean(), false),
  /** The owner has read that Google acts as a controller of what passes. */
  acknowledged: z.literal(true, 'must be true: Google acts as a controller of what passes'),
});
