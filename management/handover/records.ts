import { LRUCache } from 'lru-cache';
import { limit } from '../../base/limit.ts';
import { isWithinDomain, registrableDomain } from '../../sites/manifest/schema.ts';
import type { Context } from '../context/context.ts';
import type { AskedHosts } from '../domains/asked-hosts.ts';
import { isReadyToSwitch, readCertificates } from '../domains/certificates.ts';
import { askDns } from '../domains/dns-watch.ts';
import type { Dns } from '../domains/judge-dns.ts';
import { checkProof } from '../proof/check.ts';
import type { ContainerWithOperation } from '../records/containers.repository.ts';
import { registrablePartsOf, unprovenDomains } from '../records/domain-proofs.repository.ts';
import { withoutForeignNames } from '../records/foreign-names.repository.ts';
import { presentProof } from '../view/proof.ts';
import { containersOf, type LinkRow } from './links.repository.ts';

/** One DNS record to set, and whether the resolvers have it. */
export interface HandoverRecord {
  /** The registrable domain, whose zone has the record. */
  readonly zone: string;
  readonly type: 'CNAME' | 'TXT';
  readonly name: string;
  readonly value: string;
  /** The address records that may be set instead of the CNAME. */
  readonly addresses: readonly string[];
  readonly purpose: string;
  readonly state: 'right' | 'missing' | 'wrong' | 'unknown';
  /** What is wrong and what to do; `null`: nothing is. */
  readonly detail: string | null;
}

/** The most containers and records that a link shows: a person must be able to read the page. */
const MOST_CONTAINERS = 100;
const MOST_RECORDS = 300;
/** How long the host's answers are shown without asking it again. */
const KEPT_MS = 30_000;
const MOST_SITES = 1_000;
/** Names that are asked for at once. */
const WIDTH = 8;

type Scope = Pick<LinkRow, 'id' | 'client_id' | 'container_id'>;

/** The records of a link's containers, by zone, with the states that DNS and the proofs have now. */
export class HandoverRecords {
  readonly #context: Context;
  readonly #hosts: AskedHosts;
  /** By site: a page that is read again doesn't ask the host again. */
  readonly #certificates = new LRUCache<string, ReturnType<typeof readCertificates>>({
    max: MOST_SITES,
    ttl: KEPT_MS,
  });

  constructor(context: Context, hosts: AskedHosts) {
    this.#context = context;
    this.#hosts = hosts;
  }

  /** The answers of the resolvers are at most a minute old. Without a request, the host isn't asked. */
  async read(scope: Scope, requestId: string | null = null): Promise<HandoverRecord[]> {
    const rows = await containersOf(this.#context.db, scope, MOST_CONTAINERS);
    const proofs = rows.flatMap((row) => this.#proofs(row));
    const hosts = await limit(WIDTH).map(
      rows
        .flatMap((row) => row.manifest.customDomains.map((domain) => ({ row, domain })))
        .slice(0, MOST_RECORDS),
      ({ row, domain }) => this.#customDomain(row, domain, requestId),
    );
    const all = new Map([...proofs, ...hosts].map((record) => [`${record.type} ${record.name}`, record]));
    return [...all.values()].sort(inOrder).slice(0, MOST_RECORDS);
  }

  /** The registrable domains of the pages of a link's containers. `isProven`: only those that are the client's. */
  async zones(
    scope: Pick<LinkRow, 'client_id' | 'container_id'>,
    { isProven = false } = {},
  ): Promise<string[]> {
    const { db, settings } = this.#context;
    const rows = await containersOf(db, scope, MOST_CONTAINERS);
    const zones = registrablePartsOf(
      rows.flatMap(({ manifest }) => manifest.domains.map(({ domain }) => domain)),
    );
    if (!isProven || settings.domainProof === 'off') return zones;
    const unproven = await unprovenDomains(db, scope.client_id, zones);
    return zones.filter((zone) => !unproven.includes(zone));
  }

  /** Like `read`, but asks the resolvers now. Does that at most once in ten seconds for one link. */
  async check(scope: Scope, requestId: string): Promise<HandoverRecord[]> {
    const { db, settings } = this.#context;
    const rows = await containersOf(db, scope, MOST_CONTAINERS);
    const names = rows.flatMap(({ manifest }) => [manifest.hostnames.origin, ...manifest.customDomains]);
    const isNow = this.#hosts.forget(scope.id, names) === null;
    for (const { site_id } of isNow ? rows : []) this.#certificates.delete(site_id);
    if (isNow && settings.domainProof === 'dns') {
      const missing = rows.flatMap((row) => this.#proofs(row)).filter(({ state }) => state !== 'right');
      await limit(WIDTH).map([...new Set(missing.map(({ zone }) => zone))], (domain) =>
        checkProof(this.#context, { client: scope.client_id, domain }, requestId),
      );
    }
    return await this.read(scope, requestId);
  }

  /** The records that prove the domains of a container's pages. */
  #proofs(row: ContainerWithOperation): HandoverRecord[] {
    return registrablePartsOf(row.manifest.domains.map(({ domain }) => domain)).flatMap((zone) => {
      const proof = presentProof(zone, row, this.#context.settings);
      if (proof === null) return [];
      const isRight = proof.status === 'proven' && proof.absentSince === null;
      return {
        ...{ zone, type: 'TXT' as const, ...proof.record, addresses: [] },
        purpose: 'Shows that the domain is yours. It must stay.',
        state: isRight ? ('right' as const) : ('missing' as const),
        detail: isRight ? null : 'more than half of the resolvers must have it',
      };
    });
  }

  async #customDomain(
    row: ContainerWithOperation,
    domain: string,
    requestId: string | null,
  ): Promise<HandoverRecord> {
    const { manifest } = row;
    const alias = manifest.hostnames.origin;
    const { dns, addresses } = await askDns(this.#hosts, manifest, domain);
    const { status, detail } = dns;
    return {
      ...{ zone: registrableDomain(domain) ?? domain, type: 'CNAME', name: domain, value: alias, addresses },
      purpose: 'Serves the tags from your own domain.',
      state: status === 'ok' ? 'right' : status,
      detail: requestId === null ? detail : await this.#detail(row, domain, dns, requestId),
    };
  }

  /**
   * Why a name that leads to its host has no certificate, for example because CAA records of the client forbid it; of one
   * that doesn't lead there, also whether the host is ready for it.
   */
  async #detail({ id, site_id }: ContainerWithOperation, domain: string, dns: Dns, requestId: string) {
    const asked = this.#certificates.get(site_id) ?? readCertificates(this.#context, site_id, requestId);
    this.#certificates.set(site_id, asked);
    const found = (await asked)?.find(({ key }) => key === domain);
    if (isReadyToSwitch(dns, found, this.#context.clock.date().getTime())) {
      return `The new host serves it with a valid certificate already. ${dns.detail}`;
    }
    if (dns.status !== 'ok') return dns.detail;
    if (found === undefined || !['pending_certificate', 'expired'].includes(found.state)) return null;
    return `It has no certificate yet: ${await withoutForeignNames(this.#context.db, id, found.reason)}`;
  }
}

/** Whether a mail address is in one of the registrable domains. */
export function isWithin(address: string, zones: readonly string[]): boolean {
  const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase();
  return zones.some((zone) => isWithinDomain(domain, zone));
}

/** True if there are records, and all of them are right. */
export function areComplete(records: readonly HandoverRecord[]): boolean {
  return records.length > 0 && records.every(({ state }) => state === 'right');
}

/** By zone; in each, the proof first, because without it only the edge hostname serves the domain. */
function inOrder(a: HandoverRecord, b: HandoverRecord): number {
  const key = ({ zone, type, name }: HandoverRecord) => `${zone} ${type === 'TXT' ? 0 : 1} ${name}`;
  return key(a) < key(b) ? -1 : 1;
}
