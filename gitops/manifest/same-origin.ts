import { z } from 'zod';
import { blockedSegment } from '../../edge/verification/block-lists.ts';
import { ROUTE_PATHS } from '../../plugins/document.ts';

/** First segments of the edge's own paths: a prefix of that name would hide them. */
const OWN = [...new Set(ROUTE_PATHS.map((path) => path.split('/')[1]))].filter((segment) =>
  /^[a-z0-9]{6,12}$/.test(segment ?? ''),
);

/** The path on a domain's own pages under which everything of the edge answers: one segment. */
export const sameOriginPath = z
  .string()
  .regex(/^\/[a-z0-9]{6,12}$/, 'must be / and 6 to 12 of a-z and 0-9')
  .regex(new RegExp(`^/(?!(?:${OWN.join('|')})$)`), 'is one of the edge’s own paths')
  .refine(
    (path) => blockedSegment(path) === null,
    'is a word that common blocking lists match; choose a neutral one',
  );

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

interface Prefixed {
  readonly domains: readonly { readonly sameOrigin?: z.output<typeof sameOrigin> }[];
  readonly modules: { readonly server_proxy?: { readonly paths: readonly string[] } | undefined };
}

/** The domains, by index, whose prefix would hide a path that the site forwards to its tag server. */
export function hidingPrefixes({ domains, modules }: Prefixed): number[] {
  const forwarded = new Set(modules.server_proxy?.paths.map((path) => `/${path.split('/')[1]}`));
  return domains.flatMap(({ sameOrigin: own }, index) =>
    own !== undefined && forwarded.has(own.path) ? [index] : [],
  );
}
