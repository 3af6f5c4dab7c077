import { type CheckContext, hostsAndDomains, tagHosts } from '../check.ts';
import { failed, passed } from '../result.ts';
import { described } from '../visit.ts';
import { whereNamed } from './names.ts';

/** A reserved name that can't be a site's domain (RFC 2606). */
const FOREIGN_ORIGIN = 'https://tagyard-verification.invalid';

const preflight = (origin: string) => ({
  method: 'OPTIONS' as const,
  headers: {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'content-type',
  },
});

/** Sends the preflight request of a page's `/boot`. */
export async function checkCorsAllowed(context: CheckContext) {
  const { site, visit } = context;
  return await Promise.all(
    hostsAndDomains(site).map(({ host, page: { domain } }) => {
      const subject = host.origin === new URL(site.edge).origin ? domain : host.hostname;
      return whereNamed(context, host, subject, async () => {
        const origin = `https://${domain}`;
        const answer = await visit(new URL('/boot', host), preflight(origin));
        const allowed = answer.headers.get('access-control-allow-origin');
        const credentials = answer.headers.get('access-control-allow-credentials');
        const allowsPage =
          answer.status !== null && answer.status < 300 && allowed === origin && credentials === 'true';
        if (allowsPage) return passed(subject, `${host.host} allows pages of ${domain}`);
        const header = answer.status === null ? '' : `, access-control-allow-origin ${allowed ?? 'missing'}`;
        return failed(
          subject,
          `${host.host} doesn’t allow pages of ${domain}: ${described(answer)}${header}`,
          'Run tagyard plan to check the site’s documents in KV, and check that nothing before the edge removes CORS headers.',
        );
      });
    }),
  );
}

export async function checkCorsRefused(context: CheckContext) {
  const { site, visit } = context;
  return await Promise.all(
    tagHosts(site).map((host) =>
      whereNamed(context, host, host.hostname, async () => {
        const answer = await visit(new URL('/boot', host), preflight(FOREIGN_ORIGIN));
        const allowed = answer.headers.get('access-control-allow-origin');
        if (answer.status === 403 && allowed === null) {
          return passed(host.hostname, `${host.host} refuses pages of other origins`);
        }
        return failed(
          host.hostname,
          allowed === null
            ? `${host.host} didn’t refuse a page of a foreign origin: ${described(answer)}`
            : `${host.host} allows pages of ${FOREIGN_ORIGIN} (access-control-allow-origin: ${allowed})`,
          'Remove what answers for the edge or adds CORS headers: a transform rule, a proxy, another worker.',
        );
      }),
    ),
  );
}
