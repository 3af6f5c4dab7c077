import { type CheckContext, hostsAndDomains, tagHosts } from '../check.ts';
import { failed, passed } from '../result.ts';
import { described } from '../visit.ts';
import { whereNamed } from './names.ts';

/** Reserved for names that nobody has (RFC 2606): no site's domain. */
const STRANGER = 'https://tagyard-verification.invalid';

const preflight = (origin: string) => ({
  method: 'OPTIONS' as const,
  headers: {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'content-type',
  },
});

/** What a browser asks before a page's `/boot` may go out with cookies. */
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
        const fine =
          answer.status !== null && answer.status < 300 && allowed === origin && credentials === 'true';
        if (fine) return passed(subject, `${host.host} lets pages of ${domain} ask`);
        const heard = answer.status === null ? '' : `, access-control-allow-origin ${allowed ?? 'missing'}`;
        return failed(
          subject,
          `${host.host} doesn’t let pages of ${domain} ask: ${described(answer)}${heard}`,
          'Run tagyard plan for the site’s documents in KV, and see that nothing before the edge takes CORS headers away.',
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
        const answer = await visit(new URL('/boot', host), preflight(STRANGER));
        const allowed = answer.headers.get('access-control-allow-origin');
        if (answer.status === 403 && allowed === null) {
          return passed(host.hostname, `${host.host} refuses pages of other origins`);
        }
        return failed(
          host.hostname,
          allowed === null
            ? `${host.host} didn’t refuse a stranger’s page: ${described(answer)}`
            : `${host.host} lets pages of ${STRANGER} ask (access-control-allow-origin: ${allowed})`,
          'Take away whatever adds CORS headers before the edge: a transform rule, a proxy, another worker.',
        );
      }),
    ),
  );
}
