import { FORWARDED_COOKIES } from '../../plugins/document.ts';
import { maySeeTokens } from '../access/roles.ts';
import type { Settings } from '../context/context.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import type { Role } from '../lifecycle/roles.ts';
import { isQuotableCookie } from '../snippets/forwarder.ts';
import { renderSnippets } from '../snippets/index.ts';
import type { ContainerView } from './container-view.ts';
import { forwarderToken, forwarderTokenHash } from './forwarder-token.ts';

type SameOriginView = ContainerView['domains'][number]['sameOrigin'];

interface Viewing {
  readonly manifest: ManifestView;
  readonly role: Role | undefined;
  readonly settings: Pick<Settings, 'edgePublicUrl' | 'forwarderKey'>;
}

/**
 * A domain's `sameOrigin` in the API's answers. The token and the snippets with it are only for roles that may see
 * tokens. They are absent if the token was made with another key; then rotate the token to get a new one.
 */
export function presentSameOrigin(
  { domain, sameOrigin }: ManifestView['domains'][number],
  { manifest, role, settings: { edgePublicUrl, forwarderKey } }: Viewing,
): SameOriginView {
  if (sameOrigin === undefined) return null;
  const { path, forwarder } = sameOrigin;
  if (role === undefined || !maySeeTokens(role) || forwarderKey === null) return { path };
  const { generation, tokenHash } = forwarder;
  const token = forwarderToken(forwarderKey, { container: manifest.container, domain, generation });
  if (forwarderTokenHash(token) !== tokenHash) return { path };
  const edge = edgePublicUrl.replace('{host}', manifest.hostnames.edge);
  const snippets = renderSnippets({ edge, path, domain, token, cookies: passedCookies(manifest) });
  return { path, forwarderToken: token, snippets };
}

/**
 * The cookies that a forwarder passes on: those that the edge accepts under every prefix, those that the site restores or
 * that its tag server reads, and its master cookies. Names with characters that are special in some product's
 * configuration are omitted.
 */
function passedCookies({ modules }: ManifestView): string[] {
  const { cookies = [], masterCookie = [] } = modules.cookie_restoration ?? {};
  const named = modules.server_proxy?.cookies ?? [];
  return [...new Set([...FORWARDED_COOKIES, ...cookies, masterCookie, ...named].flat())].filter(
    isQuotableCookie,
  );
}
