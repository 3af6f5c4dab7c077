import type { CheckContext } from '../check.ts';
import type { NameAnswer } from '../contract.ts';
import { type Finding, failed, passed, skipped } from '../result.ts';

/** What a name of Cloudflare's resolves to that it doesn't proxy although it should (RFC 6666, the discard prefix). */
const DISCARDED = '100::';
const DAY_MS = 86_400_000;
/** A renewal that has not happened by then won't happen by itself. */
const LEAST_DAYS = 14;

export function checkDns({ host }: CheckContext) {
  if (host === null) return [skipped(null, 'only the host asks the resolver')];
  return host.names
    .filter(({ kind }) => kind !== 'page')
    .map((answer) => judgeName(answer, host.site.origin));
}

/**
 * Checks something on one of the site's hosts, but only where its name leads to the site: whatever answers on another
 * one, or doesn't, says nothing of the site and would hide what is really wrong.
 */
export async function whereNamed(
  context: CheckContext,
  host: URL,
  subject: string,
  check: () => Promise<Finding>,
): Promise<Finding> {
  const lost = checkDns(context).some((dns) => dns.status === 'failed' && dns.subject === host.hostname);
  if (!lost) return await check();
  return skipped(subject, `${host.host} isn’t asked: its name doesn’t lead to the site, see the check dns`);
}

function judgeName(answer: NameAnswer, origin: string): Finding {
  const { name, kind, addresses, alias, expected, problem } = answer;
  const wanted = `must be ${expected.join(' or ') || 'an address of the edge'}${kind === 'custom' ? ` or a CNAME to ${new URL(origin).hostname}` : ''}`;
  const fix =
    kind === 'custom'
      ? `At ${name}’s DNS provider set an A record to ${expected.join(', ')}, or a CNAME to ${new URL(origin).hostname}.`
      : `Run tagyard plan and tagyard apply, which write this record; if they change nothing, ${kind === 'edge' ? 'the zone isn’t proxied by the edge' : 'the world’s resolvers don’t see the zone that is written'}.`;
  if (addresses.length === 0) {
    return failed(name, `${name} doesn’t resolve (${problem ?? 'no address'}); it ${wanted}`, fix);
  }
  const wrong = addresses.filter((address) =>
    expected.length === 0 ? address === DISCARDED : !expected.includes(address),
  );
  const via = alias === null ? '' : ` by way of ${alias}`;
  if (wrong.length === 0) return passed(name, `${name} resolves to ${addresses.join(', ')}${via}`);
  return failed(name, `${name} resolves to ${wrong.join(', ')}${via}, ${wanted}`, fix);
}

export function checkCertificate({ host, now }: CheckContext) {
  if (host === null)
    return [skipped(null, 'the runtime of this check sees no certificates, only the host does')];
  return host.certificates.map(({ name, validTo, covers, problem }): Finding => {
    const fix = `Put a certificate for ${name} in place (TLS_DIR of the host; for an edge hostname, in its zone) and run tagyard apply; with tls: acme, tagyard status says where its order stands.`;
    if (validTo === null)
      return failed(name, `${name} shows no certificate: ${problem ?? 'nobody answers'}`, fix);
    if (!covers) return failed(name, `the certificate that ${name} shows is of another name`, fix);
    const days = Math.floor((Date.parse(validTo) - now) / DAY_MS);
    const until = `until ${validTo.slice(0, 10)}`;
    if (days >= LEAST_DAYS) return passed(name, `the certificate of ${name} is valid ${until}, ${days} days`);
    const state = days < 0 ? `ended on ${validTo.slice(0, 10)}` : `is valid ${until} only, ${days} days`;
    return failed(name, `the certificate of ${name} ${state}`, fix);
  });
}
