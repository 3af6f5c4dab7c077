import { z } from 'zod';
import { blockedSegment } from '../../edge/verification/block-lists.ts';
import { ROUTE_PATHS } from '../../plugins/document.ts';
import { isNamedBy } from '../../plugins/paths.ts';
import { forwardedPaths } from '../../plugins/server_proxy/config.ts';

/** First segments of the edge's own paths: a prefix of that name would hide them. */
const OWN = [...new Set(ROUTE_PATHS.map((path) => path.split('/')[1]))].filter((segment) =>
  /^[a-z0-9]{6,12}$/.test(segment ?? ''),
);

/** The path on a domain's own pages under which everything of the edge answers: one segment. */
export const sameOriginPath = z
  .string()
  .regex(/^\/[a-z0-9]{6,12}$/, 'must be / and 6 to 12 characters of a-z and 0-9')
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
  readonly modules: {
    readonly server_proxy?: Parameters<typeof forwardedPaths>[0];
    readonly custom_loader?: { readonly scriptPath?: string | undefined } | undefined;
  };
}

interface Problem {
  readonly path: (string | number)[];
  readonly message: string;
}

/** Prefixes that hide a path of the site's tag server, and a loader's `scriptPath` that is itself such a path. */
export function hidingPaths({ domains, modules }: Prefixed): Problem[] {
  const forwarded = forwardedPaths(modules.server_proxy);
  const segments = new Set(forwarded.map((path) => `/${path.split('/')[1]}`));
  const problems = domains.flatMap(({ sameOrigin: own }, index): Problem[] => {
    if (own === undefined || !segments.has(own.path)) return [];
    const message = 'hides a path of modules.server_proxy (paths or tagServingPath); choose another one';
    return [{ path: ['domains', index, 'sameOrigin', 'path'], message }];
  });
  const { scriptPath } = modules.custom_loader ?? {};
  const wide = ROUTE_PATHS.filter((path) => path.endsWith('/*'));
  const named = [...wide, ...forwarded].filter((path) => path !== '/*');
  if (scriptPath !== undefined && isNamedBy(`/${scriptPath}`, named)) {
    const message = 'is a path of the tag server (modules.server_proxy or its own); choose another one';
    problems.push({ path: ['modules', 'custom_loader', 'scriptPath'], message });
  }
  return problems;
}
