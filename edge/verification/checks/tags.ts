import * as z from 'zod/mini';
import { activeDomains, type CheckContext, hostsAndDomains, tagHosts } from '../check.ts';
import type { SiteDescription } from '../contract.ts';
import { type Finding, failed, passed, skipped } from '../result.ts';
import { described, isProblem, type Visit } from '../visit.ts';
import { whereNamed } from './names.ts';

const bootAnswer = z.object({
  container: z.object({ webTagId: z.string() }),
  site: z.object({ domain: z.string() }),
});

const edgeProblem = z.object({ code: z.string() });

const STORES_ADVICE =
  'Run tagyard plan: the route or the documents of the site in KV differ from the manifest; tagyard apply repairs them. If something was changed less than a minute ago, verify again first: KV shows changes late.';

/**
 * A setting for regions in the text of a script, such as `"region":["DE"]` or `"region","US-CA"`: in the container's data, in
 * a page's command, or in a string of custom HTML, whose quotes are escaped.
 */
const REGIONAL =
  /\bregions?(?:\\?["']|\\x2[27]|\\u002[27])?\s*[:,]\s*\[?\s*(?:\\?["']|\\x2[27]|\\u002[27])[A-Z]{2}(?:-[A-Z0-9]{1,3})?(?![A-Za-z0-9-])/;
const UNPROVEN_PLACE =
  'that script has settings for regions, and it isn’t proven that the vendor answers by the visitor’s place';
const PLACE_ADVICE =
  'Let pages load the script from the container’s web container client (with the variable Visitor Region): set its tag serving path in modules.server_proxy.tagServingPath. Below a same-origin prefix the loader, not that client, answers /gtm.js, unless modules.custom_loader.scriptPath names another path. Or run npm run conform -- --google, and set SCRIPTS_BY_PLACE if it shows that gtm.js depends on the stated place.';

export async function checkLoader(context: CheckContext) {
  const { site, visit } = context;
  return await Promise.all(
    tagHosts(site).map((base) =>
      whereNamed(context, base, base.hostname, async () => {
        const answer = await visit(new URL(`/l/${site.loaderToken}.js`, base));
        if (answer.status !== 200 || !isScript(answer)) {
          return failed(
            base.hostname,
            `the loader on ${base.host}: ${described(answer)}`,
            reachAdvice(site, base),
          );
        }
        if (answer.text.includes(JSON.stringify(base.origin))) {
          return passed(base.hostname, `the loader answers on ${base.host}`);
        }
        return failed(
          base.hostname,
          `the loader on ${base.host} names another host as the edge`,
          'The edge doesn’t trust the proxy in front of it: check that HOP_SECRET is the same on the host and in the worker.',
        );
      }),
    ),
  );
}

/** Sends `Sec-GPC: 1`, so that a verification stores no profile. */
export async function checkBoot(context: CheckContext) {
  const { site, visit } = context;
  const findings = hostsAndDomains(site).map(({ host, page }) => {
    const subject = host.origin === new URL(site.edge).origin ? page.domain : host.hostname;
    return whereNamed(context, host, subject, async () => {
      const answer = await visit(new URL('/boot', host), {
        method: 'POST',
        headers: { origin: `https://${page.domain}`, 'sec-gpc': '1' },
        body: { loader: site.loaderToken, url: `https://${page.domain}/` },
      });
      const boot = answer.status === 200 ? bootAnswer.safeParse(parsed(answer)).data : undefined;
      if (boot === undefined) {
        return failed(
          subject,
          `/boot on ${host.host} for ${page.domain}: ${described(answer)}`,
          reachAdvice(site, host),
        );
      }
      if (boot.site.domain === page.domain && boot.container.webTagId === page.webTagId) {
        return passed(subject, `${host.host} knows ${page.domain}`);
      }
      return failed(
        subject,
        `for ${page.domain}, ${host.host} answers with ${boot.site.domain} and ${boot.container.webTagId}`,
        STORES_ADVICE,
      );
    });
  });
  return [...(await Promise.all(findings)), ...inert(site)];
}

export async function checkScript(context: CheckContext) {
  const { site, visit } = context;
  const findings = hostsAndDomains(site).map(({ host, page }) => {
    const subject = host.origin === new URL(site.edge).origin ? page.domain : host.hostname;
    return whereNamed(context, host, subject, async () => {
      const answer = await visit(new URL(`/c/${page.token}.js`, host));
      if (answer.status === 200 && isScript(answer)) {
        const served = `${host.host} serves the script of ${page.webTagId}`;
        if (context.scriptsByPlace || !REGIONAL.test(answer.text)) return passed(subject, served);
        return passed(subject, `${served}; ${UNPROVEN_PLACE}`, PLACE_ADVICE);
      }
      return failed(
        subject,
        `the script of ${page.domain} on ${host.host}: ${described(answer)}`,
        isVendorFault(answer)
          ? `The vendor gave no script of ${page.webTagId}: verify again, publish that web container, or correct its id.`
          : reachAdvice(site, host),
      );
    });
  });
  return [...(await Promise.all(findings)), ...inert(site)];
}

/** True if the edge itself reports that the vendor failed. Any other 502 comes from a hop in between. */
function isVendorFault(answer: Visit): boolean {
  return (
    answer.status === 502 &&
    isProblem(answer) &&
    edgeProblem.safeParse(parsed(answer)).data?.code === 'upstream_failed'
  );
}

function inert(site: SiteDescription): Finding[] {
  const active = new Set(activeDomains(site));
  return site.domains
    .filter((entry) => !active.has(entry))
    .map(({ domain }) => skipped(domain, `${domain} is inert until the feature multi_domain is on`));
}

function isScript({ headers }: Visit): boolean {
  return /\bjavascript\b/.test(headers.get('content-type') ?? '');
}

function parsed({ text }: Visit): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function reachAdvice({ edge }: SiteDescription, { origin, hostname }: URL): string {
  if (origin === new URL(edge).origin) return STORES_ADVICE;
  return `Point ${hostname} to the host (see the checks of its name and certificate), and run tagyard plan for its vhost.`;
}
