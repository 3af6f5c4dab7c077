import { isUnder } from './public-url.ts';

/**
 * Matches a line that sets the visitor's id. Browsers send the nameless cookie `=_fpid=…` like a cookie named `_fpid`.
 */
const SETS_ID = /^[ \t]*=?[ \t]*_fpid[ \t]*=/;
const DOMAIN = /^[ \t]*domain[ \t]*=[ \t]*(?:\.?(.*?))?[ \t]*$/i;

/**
 * Removes the `Set-Cookie` lines for a domain outside `ownHosts`: a cookie for the zone of all edge hostnames, for
 * example, would reach every other site. Also removes all lines that set the visitor's id, and puts the permitted
 * ones (`id`) first. Browsers use the last of several `Domain` attributes; here each one must be under `ownHosts`.
 */
export function withOwnCookies(
  response: Response,
  ownHosts: readonly string[],
  id: readonly string[],
): Response {
  const given = response.headers.getSetCookie();
  const kept = given.filter((line) => !SETS_ID.test(line) && staysInside(line, ownHosts));
  if (kept.length === given.length && id.length === 0) return response;
  const answer = new Response(response.body, response);
  answer.headers.delete('set-cookie');
  for (const line of [...id, ...kept]) answer.headers.append('set-cookie', line);
  return answer;
}

function staysInside(line: string, ownHosts: readonly string[]): boolean {
  return line
    .split(';')
    .slice(1)
    .every((attribute) => {
      const domain = DOMAIN.exec(attribute)?.[1]?.toLowerCase();
      return !domain || (!domain.startsWith('.') && ownHosts.some((own) => isUnder(domain, own)));
    });
}

/** The lines of a response that set the visitor's id. */
export const idCookies = ({ headers }: Response): string[] =>
  headers.getSetCookie().filter((line) => SETS_ID.test(line));
