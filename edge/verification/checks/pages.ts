import type { CheckContext, ForwardedDomain } from '../check.ts';
import type { Visit } from '../visit.ts';

/** Where a domain's pages are, and how its first page answered. */
interface Pages {
  readonly origin: string;
  readonly visit: Visit;
}

/** Finds the host of a domain's pages: the domain itself, or the host under it to which its first page redirects. */
export async function findPages(
  { visit }: CheckContext,
  { domain }: Pick<ForwardedDomain, 'domain'>,
): Promise<Pages> {
  const first = new URL(`https://${domain}/`);
  const answer = await visit(first);
  const target = URL.parse(answer.headers.get('location') ?? '', first.href);
  const isRedirect = answer.status !== null && answer.status >= 300 && answer.status < 400;
  if (!isRedirect || target === null || target.origin === first.origin) {
    return { origin: first.origin, visit: answer };
  }
  const next = await visit(new URL('/', target));
  // `visit` refuses another domain's host: the domain itself is checked then.
  return next.status === null
    ? { origin: first.origin, visit: answer }
    : { origin: target.origin, visit: next };
}
