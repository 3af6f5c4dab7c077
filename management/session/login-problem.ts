import * as openid from 'openid-client';
import { ManagementProblem } from '../http/errors.ts';

/** RFC 6749, 5.2: the provider refuses this installation, not the person. */
const REFUSED_CLIENT = ['invalid_client', 'unauthorized_client'];

/** The problem for tokens of the provider that can't be fetched or aren't valid: `invalid_login`, `login_unavailable`. */
export function loginProblem(cause: unknown): ManagementProblem {
  if (isOutage(cause)) return new ManagementProblem('login_unavailable', { cause });
  if (cause instanceof openid.ResponseBodyError && REFUSED_CLIENT.includes(cause.error)) {
    const detail =
      'The identity provider refuses this installation: ask its operator to check OIDC_CLIENT_ID and OIDC_CLIENT_SECRET';
    return new ManagementProblem('login_unavailable', { detail, cause });
  }
  if (cause instanceof openid.ClientError && cause.code === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED') {
    const detail =
      'By this host’s clock, the identity provider’s answer is not valid now: ask the host’s operator to check its clock';
    return new ManagementProblem('invalid_login', { detail, cause });
  }
  return new ManagementProblem('invalid_login', { cause });
}

/** Whether the provider was unreachable or answered with a server error: the same login may succeed later. */
function isOutage(cause: unknown): boolean {
  if (cause instanceof TypeError) return true;
  if (!(cause instanceof openid.ClientError)) return false;
  const { code, cause: answer } = cause;
  return (
    code === 'OAUTH_TIMEOUT' || code === 'OAUTH_ABORT' || (answer instanceof Response && answer.status >= 500)
  );
}
