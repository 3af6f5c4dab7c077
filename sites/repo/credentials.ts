import { resolve } from 'node:path';
import { percentDecoded } from '../../base/http/percent.ts';

/** A URL without credentials, and the environment by which git gets them. */
interface CleanUrl {
  readonly url: string;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * A credential helper, which git runs in a shell. It has only names of variables, because all users can see arguments.
 */
const HELPER =
  '!f() { test "$1" = get || exit 0; echo "username=$TAGYARD_GIT_USERNAME"; ' +
  'test -z "$TAGYARD_GIT_PASSWORD_FILE" || IFS= read -r TAGYARD_GIT_PASSWORD <"$TAGYARD_GIT_PASSWORD_FILE"; ' +
  'test -z "$TAGYARD_GIT_HAS_PASSWORD" || echo "password=$TAGYARD_GIT_PASSWORD"; }; f';

/**
 * Removes the credentials from a URL, so that arguments, configuration files and git's messages don't contain them. A
 * credential helper supplies them, only to the URL's host. Source: gitcredentials(7); GIT_CONFIG_COUNT in
 * git-config(1).
 *
 * `passwordFile`: the helper reads the password from it, each time that git needs it.
 */
export function withoutCredentials(text: string, passwordFile?: string): CleanUrl {
  const url = URL.parse(text);
  const isEmpty = url === null || (url.username === '' && url.password === '');
  if (url === null || (isEmpty && passwordFile === undefined)) return { url: text, env: {} };
  const { username, password, protocol, host } = url;
  // ssh takes no password; its user is not a secret, and is a part of the address.
  if (!/^https?:$/.test(protocol)) {
    url.password = '';
    return { url: url.href, env: {} };
  }
  const hasPassword = /^[a-z]+:\/\/[^/@]*:/.test(text);
  url.username = '';
  url.password = '';
  return {
    url: url.href,
    env: {
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: `credential.${protocol}//${host}.helper`,
      GIT_CONFIG_VALUE_0: HELPER,
      // Forges that take a token as password need a name, but any does.
      TAGYARD_GIT_USERNAME: percentDecoded(username) || (passwordFile === undefined ? '' : 'git'),
      ...(passwordFile === undefined
        ? {}
        : { TAGYARD_GIT_HAS_PASSWORD: '1', TAGYARD_GIT_PASSWORD_FILE: resolve(passwordFile) }),
      ...(hasPassword && passwordFile === undefined
        ? { TAGYARD_GIT_HAS_PASSWORD: '1', TAGYARD_GIT_PASSWORD: percentDecoded(password) }
        : {}),
    },
  };
}

/** The text without the user and password of any URL in it. */
export function redactUrls(text: string): string {
  return text.replace(/\/\/[^/\s]+@/g, '//');
}
