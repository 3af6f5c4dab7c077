import { isActiveDomain } from '../../plugins/multi_domain/config.ts';
import { isFirstPartyHost, isProven, provenHosts } from '../../sites/manifest/schema.ts';
import type { ProvisionerCertificate } from '../clients/provisioner-client.ts';
import type { Context } from '../context/context.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import type { ContainerWithOperation } from '../records/containers.repository.ts';
import { withoutForeignNames } from '../records/foreign-names.repository.ts';
import { loaderUrl } from '../view/present.ts';
import { presentProof } from '../view/proof.ts';
import type { AskedHosts } from './asked-hosts.ts';
import { isReadyToSwitch, readCertificates } from './certificates.ts';
import { cookieLifetime, type ResolvedHost } from './cookie-lifetime.ts';
import { askDns, recordDns } from './dns-watch.ts';
import type { CustomDomainView, DomainStateView } from './domain-states.schema.ts';

type Page = ManifestView['domains'][number];
type Tls = CustomDomainView['tls'];
const STATES: readonly string[] = ['pending_dns', 'pending_certificate', 'live', 'drifted', 'expired'];

/** The states of a container's custom domains and of the domains of its pages. */
export class DomainStates {
  readonly #context: Context;
  readonly #hosts: AskedHosts;

  constructor(context: Context, hosts: AskedHosts) {
    this.#context = context;
    this.#hosts = hosts;
  }

  async customDomains(
    row: ContainerWithOperation,
    domains: readonly string[],
    requestId: string,
  ): Promise<CustomDomainView[]> {
    if (domains.length === 0) return [];
    const certificates = await readCertificates(this.#context, row.site_id, requestId);
    const views = await Promise.all(domains.map((domain) => this.#customDomain(row, domain, certificates)));
    await recordDns(
      this.#context,
      row,
      views.map(({ domain, dns }) => [domain, dns]),
    );
    return views;
  }

  /** The state of a domain whose pages have the snippet. */
  async domain(row: ContainerWithOperation, page: Page): Promise<DomainStateView> {
    const { manifest } = row;
    const { settings } = this.#context;
    const { domain, sameOrigin } = page;
    const proven = isProven(manifest, domain);
    const proof = presentProof(domain, row, settings);
    const seen = await this.#hosts.ask(domain);
    const prefix = proven ? sameOrigin?.path : undefined;
    return {
      domain,
      active: isActiveDomain(manifest.domains.indexOf(page), manifest.features.multi_domain),
      address: prefix === undefined ? loaderUrl(domain, manifest, settings) : `https://${domain}${prefix}`,
      records: proof === null ? [] : [{ type: 'TXT', ...proof.record }],
      sameOrigin: sameOrigin === undefined ? null : { path: sameOrigin.path, served: proven },
      dns: { answers: answersOf(seen) },
      proof,
      cookieLifetime:
        prefix === undefined
          ? cookieLifetime(seen, await this.#tagHosts(manifest, domain))
          : { verdict: 'full', reason: null },
      checkedAt: seen.at.toISOString(),
    };
  }

  async #customDomain(
    row: ContainerWithOperation,
    domain: string,
    certificates: readonly ProvisionerCertificate[] | null,
  ): Promise<CustomDomainView> {
    const { manifest } = row;
    const alias = manifest.hostnames.origin;
    const pages = manifest.domains.filter((page) => isFirstPartyHost(domain, [page.domain]));
    const [{ seen, addresses, dns }, tls, ...asked] = await Promise.all([
      askDns(this.#hosts, manifest, domain),
      this.#tls(row, domain, certificates),
      ...pages.map((page) => this.#hosts.ask(page.domain)),
    ]);
    const proof = presentProof(domain, row, this.#context.settings);
    const lifetimes = asked.map((page) => cookieLifetime(page, [seen]));
    return {
      domain,
      served: isProven(manifest, domain),
      state: domainState(row, domain, { dns, tls }, this.#context.clock.date().getTime()),
      records: [
        { type: 'CNAME', name: domain, value: alias },
        ...addresses.map((value) => ({
          type: value.includes(':') ? ('AAAA' as const) : ('A' as const),
          name: domain,
          value,
        })),
      ],
      dns,
      tls,
      proof,
      cookieLifetime: lifetimes.find(({ verdict }) => verdict === 'full') ??
        lifetimes[0] ?? { verdict: 'unknown', reason: 'no pages are under the same registrable domain' },
      checkedAt: seen.at.toISOString(),
    };
  }

  /** The hosts that may serve the tags of a domain's pages when no prefix does. */
  async #tagHosts(manifest: ManifestView, domain: string): Promise<ResolvedHost[]> {
    const own = provenHosts(manifest).filter((host) => isFirstPartyHost(host, [domain]));
    const names = own.length === 0 ? [manifest.hostnames.edge] : own;
    return await Promise.all(names.map((name) => this.#hosts.ask(name)));
  }

  async #tls(
    { id, manifest }: ContainerWithOperation,
    domain: string,
    certificates: readonly ProvisionerCertificate[] | null,
  ): Promise<Tls> {
    const unknown = { status: 'unknown' as const, issuer: null, notAfter: null };
    if (!isProven(manifest, domain)) {
      return { ...unknown, detail: 'no certificate is ordered before the domain is proven' };
    }
    if (certificates === null) return { ...unknown, detail: 'the host doesn’t answer; try again later' };
    const found = certificates.find(({ key }) => key === domain);
    if (found === undefined || !isState(found.state)) {
      return { ...unknown, detail: 'the host hasn’t checked the name’s certificate yet' };
    }
    const { state: status, issuer, notAfter, reason } = found;
    const detail = reason === '' ? null : await withoutForeignNames(this.#context.db, id, reason);
    return { status, issuer, notAfter, detail };
  }
}

/** If one of them holds, nothing of the site is served, whatever a domain of it lacks. */
const UNSERVED = ['removed', 'off', 'setting_up'] as const;

/** A pending domain has a state of its own, so that it hides nothing of its site. */
function domainState(
  { state, manifest }: Pick<ContainerWithOperation, 'state' | 'manifest'>,
  domain: string,
  { dns, tls }: Pick<CustomDomainView, 'dns' | 'tls'>,
  now: number,
): CustomDomainView['state'] {
  const ofSite = UNSERVED.find((name) => name === state.name || state.also.includes(name));
  if (ofSite !== undefined) return { name: ofSite, sentence: state.sentence, remedy: state.remedy };
  if (!isProven(manifest, domain)) {
    return {
      name: 'waits_for_proof',
      sentence: 'It isn’t served before DNS proves that it is the client’s.',
      remedy: 'Set the TXT record of its proof.',
    };
  }
  if (isReadyToSwitch(dns, { state: tls.status, notAfter: tls.notAfter }, now)) {
    return {
      name: 'ready_to_switch',
      sentence: 'Its host serves it with a valid certificate, and DNS doesn’t lead there yet.',
      remedy: dns.detail,
    };
  }
  if (dns.status === 'missing' || dns.status === 'wrong') {
    return { name: 'waits_for_dns', sentence: 'DNS doesn’t lead here.', remedy: dns.detail };
  }
  if (tls.status === 'pending_certificate' || tls.status === 'expired') {
    return { name: 'waits_for_certificate', sentence: 'It has no valid certificate.', remedy: tls.detail };
  }
  return { name: 'serving', sentence: 'It is served.', remedy: null };
}

function isState(state: string): state is Tls['status'] {
  return STATES.includes(state);
}

function answersOf({ answers }: ResolvedHost): DomainStateView['dns']['answers'] {
  return answers.map(({ addresses, aliases, ...one }) => ({
    ...one,
    addresses: [...addresses],
    aliases: [...aliases],
  }));
}
