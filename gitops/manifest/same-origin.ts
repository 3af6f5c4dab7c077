import { z } from 'zod';
import { ROUTE_PATHS } from '../../plugins/document.ts';

/** First segments of the edge's own paths: a prefix of that name would hide them. */
const OWN = [...new Set(ROUTE_PATHS.map((path) => path.split('/')[1]))].filter((segment) =>
  /^[a-z0-9]{6,12}$/.test(segment ?? ''),
);

/** The path on a domain's own pages under which everything of the edge answers: one segment. */
const sameOriginPath = z
  .string()
  .regex(/^\/[a-z0-9]{6,12}$/, 'must be / and 6 to 12 of a-z and 0-9')
  .regex(new RegExp(`^/(?!(?:${OWN.join('|')})$)`), 'is one of the edge’s own paths');

const tokenHash = z.string().regex(/^[0-9a-f]{64}$/, 'must be the SHA-256 of a token, 64 hex digits');

/** How a domain's own server forwards requests to the edge. A manifest has hashes of its tokens, never a token. */
export const sameOrigin = z
  .strictObject({
    path: sameOriginPath,
    forwarder: z.strictObject({
      generation: z.int().min(1),
      tokenHash,
      previous: z.strictObject({ tokenHash, until: z.iso.datetime() }).optional(),
    }),
  })
  .optional();
