import { isRenewalLate } from '../certificate-life.ts';
import type { CheckContext } from '../check.ts';
import type { HostReport, NameAnswer } from '../contract.ts';
import { type Finding, failed, passed, skipped } from '../result.ts';

/** What a proxied name of Cloudflare's resolves to while the proxy is not active (RFC 6666, the discard prefix). */
const DISCARDED = '100::';
const DAY_MS = 86_400_000;
/** A certificate that ends sooner, and whose renewal is late, is a fault. */
const MIN_DAYS = 14;

export function checkDns({ host, now }: CheckContext) {
  if (host === null) return [skipped(null, 'only the host queries the resolver')];
  return host.names
    .filter(({ kind }) => kind !== 'page')
    .map((answer) => judgeName(answer, host.site.origin, isServed(host, answer, now)));
}

/**
 * Runs a check at one of the site's hostnames, unless the check of DNS has failed for it: then another server would
 * answer, and its answer would hide the real fault.
 */
export async function whereNamed(
  context: CheckContext,
  host: URL,
  subject: string,
  check: () => Promise<Finding>,
): Promise<Finding> {
  const misdirected = checkDns(context).some(
    (dns) => dns.status === 'failed' && dns.subject === host.hostname,
  );
  if (!misdirected) return await check();
  return skipped(
    subject,
    `${host.host} wasn’t visited: its name doesn’t resolve to the site, see the check dns`,
  );
}

/** Whether the host answers for a client's name with a valid certificate, wherever its DNS leads. */
function isServed(host: HostReport, { name, kind }: NameAnswer, now: number): boolean {
  const served = host.certificates.find((one) => one.name === name);
  return kind === 'custom' && served?.covers === true && Date.parse(served.validTo ?? '') > now;
}

function judgeName(answer: NameAnswer, origin: string, isReady: boolean): Finding {
  const { name, kind, addresses, alias, expected, problem } = answer;
  const cname = kind === 'custom' ? [`a CNAME to ${new URL(origin).hostname}`] : [];
  // Without known addresses, only a CNAME can be named to the owner of a custom domain.
  const unnamed = kind === 'custom' ? [] : [`an address of the ${kind === 'edge' ? 'edge' : 'host'}`];
  const requirement = `must be ${[...(expected.length === 0 ? unnamed : expected), ...cname].join(' or ')}`;
  const record = expected.length === 0 ? [] : [`an A record to ${expected.join(', ')}`];
  const fix =
    kind === 'custom'
      ? `At ${name}’s DNS provider set ${[...record, ...cname].join(', or ')}.${isReady ? ' It is ready to switch: the host already serves it with a valid certificate.' : ''}`
      : `Run tagyard plan and tagyard apply, which write this record; if they change nothing, ${kind === 'edge' ? 'the zone isn’t proxied by the edge' : 'public resolvers don’t use the zone that Tagyard writes'}.`;
  if (addresses.length === 0) {
    return failed(name, `${name} doesn’t resolve (${problem ?? 'no address'}); it ${requirement}`, fix);
  }
  const wrong = addresses.filter((address) =>
    expected.length === 0 ? address === DISCARDED : !expected.includes(address),
  );
  const via = alias === null ? '' : ` by way of ${alias}`;
  if (wrong.length === 0) return passed(name, `${name} resolves to ${addresses.join(', ')}${via}`);
  return failed(name, `${name} resolves to ${wrong.join(', ')}${via}; it ${requirement}`, fix);
}

export function checkServedCertificate({ host, now }: CheckContext) {
  if (host === null)
    return [skipped(null, 'only the host can inspect certificates; the runtime of this check can’t')];
  const edge = new URL(host.site.edge).hostname;
  return host.certificates.map(({ name, validTo, validFrom, covers, problem }): Finding => {
    const fix =
      name === edge
        ? `Order a certificate for ${name} in its zone at Cloudflare.`
        : `For a certificate of ${name}, ${host.certificateFix ?? 'see tagyard status'}.`;
    if (validTo === null)
      return failed(name, `${name} presents no certificate: ${problem ?? 'no answer'}`, fix);
    if (!covers) return failed(name, `the certificate that ${name} presents is for another name`, fix);
    const ends = Date.parse(validTo);
    const days = Math.floor((ends - now) / DAY_MS);
    const isRenewed = days >= MIN_DAYS || !isRenewalLate({ notBefore: validFrom, notAfter: validTo }, now);
    const until = `until ${validTo.slice(0, 10)}`;
    if (isRenewed) return passed(name, `the certificate of ${name} is valid ${until}, ${days} days`);
    const state =
      days < 0
        ? `ended on ${validTo.slice(0, 10)}`
        : `is valid ${until} only, ${days === 1 ? '1 day' : `${days} days`}`;
    return failed(name, `the certificate of ${name} ${state}`, fix);
  });
}
