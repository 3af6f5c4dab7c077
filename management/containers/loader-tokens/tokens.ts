import { hash } from 'node:crypto';
import type { Manifest, ManifestInput } from '../../../sites/manifest/schema.ts';
import type { ManifestView } from '../../db/manifest-view.ts';
import { ManagementProblem } from '../../http/errors.ts';
import type { LoaderTokens } from './loader-tokens.schema.ts';

const SHOWN = 4;

/** The tokens by which the edge knows a site's loader, the current one first. `today` is a UTC date. */
export function tokensOf(
  { loaderToken, previousLoaderTokens }: Pick<ManifestView, 'loaderToken' | 'previousLoaderTokens'>,
  today: string,
): LoaderTokens {
  const previous = previousLoaderTokens.filter(({ until }) => until > today);
  const tokens = [{ token: loaderToken, until: null }, ...previous];
  return {
    items: tokens.map(({ token, until }, index) => ({
      id: idOf(token),
      value: `${token.slice(0, 'lt_'.length + SHOWN)}…${token.slice(-SHOWN)}`,
      current: index === 0,
      until,
    })),
    next: null,
  };
}

/** Ends the acceptance of an old token, named by its id or itself. Throws `unknown_loader_token`, or `wrong_status`. */
export function revokeLoaderToken(current: Manifest, named: string): ManifestInput {
  const isNamed = (token: string) => token === named || idOf(token) === named;
  if (isNamed(current.loaderToken)) {
    const detail = 'the current loader token can’t be revoked; rotate it first';
    throw new ManagementProblem('wrong_status', { detail });
  }
  const previousLoaderTokens = current.previousLoaderTokens.filter(({ token }) => !isNamed(token));
  if (previousLoaderTokens.length === current.previousLoaderTokens.length) {
    throw new ManagementProblem('unknown_loader_token');
  }
  return { ...current, previousLoaderTokens };
}

function idOf(token: string): string {
  return hash('sha256', token, 'hex').slice(0, 16);
}
