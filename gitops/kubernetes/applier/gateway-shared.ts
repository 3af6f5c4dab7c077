import { TerminalError } from '../../../base/errors.ts';
import { KeyedMutex } from '../../../base/limit.ts';
import { type Log, warner } from '../../../base/log.ts';
import { contentHash, type Identity } from '../../../base/ownership.ts';
import type { Manifest } from '../../../sites/manifest/schema.ts';
import { addressOf } from '../client/address.ts';
import type { KubernetesClient } from '../client/contract.ts';
import type { KubernetesObject } from '../client/kinds.ts';
import { type CertificateSummary, chooseCertificate } from '../delivery/certificate-choice.ts';
import type { InstanceDocument } from '../delivery/documents.ts';
import { DELIVERY_LABEL } from '../delivery/secrets.ts';
import type { PemPair } from './gateway-objects.ts';
import type { GatewayReports } from './gateway-reports.ts';
import { CertificateSummaries } from './state/certificate-summaries.ts';
import type { Copies } from './state/copies.ts';
import { objectDrift } from './state/drift.ts';
import { isOurs, markOf, NO_SITE } from './state/mark.ts';
import { resourceKey } from './state/object-spec.ts';
import { unneededCertificates } from './state/unneeded-certificates.ts';
import type { Writer } from './writer.ts';

/** A name that a gateway serves with TLS. */
export interface GatewayName {
  readonly host: string;
  /** `inside`: signed by the authority for policy scripts. */
  readonly tls: Manifest['tls']['mode'] | 'inside';
}

/** Where certificates come from. */
export interface CertificatePairs {
  /** The certificate of a name; `null`: there is none yet. Throws `TerminalError` if an operator must act first. */
  pairFor(name: GatewayName): Promise<PemPair | null>;
  /** Removes what is stored for all other names. */
  retain(names: readonly GatewayName[]): Promise<void>;
}

interface SharedDeps {
  readonly client: Pick<KubernetesClient, 'get'>;
  readonly copies: Copies;
  readonly writer: Writer;
  readonly reports: Pick<GatewayReports, 'refused'>;
  readonly identity: Identity;
  readonly log: Log;
  readonly pairs: CertificatePairs;
  instance(): InstanceDocument;
  renderInstance(document: InstanceDocument): KubernetesObject;
  renderCertificate(pair: PemPair): KubernetesObject;
  /** Reads again what the document of the instance is made from; never throws. */
  refresh(): Promise<void>;
}

interface FoundCertificates {
  readonly objects: readonly KubernetesObject[];
  /** Why some names have no certificate; the other names are still served. */
  readonly faults: readonly unknown[];
  /** Each name with the Secret of its certificate. */
  readonly names: readonly { readonly host: string; readonly stored: string | null }[];
}

/** What gateways need besides the sites: the document of the instance, and each certificate, once for all its names. */
export class SharedDeliveries {
  readonly #deps: SharedDeps;
  /** A certificate may be needed again while it is removed, so no two tasks write or remove one object at once. */
  readonly #mutex = new KeyedMutex();
  readonly #warn: (error: unknown) => void;
  /** The names of each delivered Secret, as they were observed or applied last. */
  readonly #names = new Map<string, readonly GatewayName[]>();
  /** Each pair is rendered once: that of a wildcard is the same for every site. */
  readonly #rendered = new WeakMap<PemPair, KubernetesObject>();
  readonly #summaries = new CertificateSummaries();
  #housekeeping: Promise<void> = Promise.resolve();

  constructor(deps: SharedDeps) {
    this.#deps = deps;
    this.#warn = warner((message) =>
      deps.log.warn({}, `what gateways need besides the sites isn’t up to date: ${message}`),
    );
  }

  /** Replaces the names of all Secrets for which `isJudged` is true. */
  want(names: ReadonlyMap<string, readonly GatewayName[]>, isJudged: (secret: string) => boolean): void {
    for (const secret of [...this.#names.keys()]) if (isJudged(secret)) this.#names.delete(secret);
    for (const [secret, own] of names) this.#names.set(secret, own);
  }

  /** What isn't delivered as these names need it, else why a name has no certificate; `null`: no fault was found. */
  async missing(names: readonly GatewayName[]): Promise<string | null> {
    const { objects, faults } = await this.#certificates(names);
    const missing = [this.#instance(), ...objects].filter((object) => !this.#isApplied(object));
    if (missing.length > 0)
      return `not delivered: ${missing.map(({ metadata }) => metadata.name).join(', ')}`;
    const [fault] = faults;
    return fault instanceof Error ? fault.message : null;
  }

  /** Delivers what the names of a Secret need, and returns why some of them have no certificate. */
  async ensure(
    secret: string,
    names: readonly GatewayName[],
    signal: AbortSignal,
  ): Promise<FoundCertificates['faults']> {
    this.#names.set(secret, names);
    await this.#write(this.#instance(), signal);
    const { objects, faults } = await this.#certificates(names);
    for (const object of objects) await this.#write(object, signal);
    return faults;
  }

  /**
   * Starts, in the background, to deliver the document of the instance and to remove certificates that no name needs.
   */
  startHousekeeping(signal: AbortSignal): void {
    this.#housekeeping = this.#housekeeping
      .then(async () => {
        await this.#deps.refresh();
        await this.#write(this.#instance(), signal);
        await this.#removeUnneeded(signal);
      })
      .then(
        () => this.#warn(null),
        (error: unknown) => {
          if (!signal.aborted) this.#warn(error);
        },
      );
  }

  async ended(): Promise<void> {
    await this.#housekeeping;
  }

  #instance(): KubernetesObject {
    return this.#deps.renderInstance(this.#deps.instance());
  }

  async #certificates(names: readonly GatewayName[]): Promise<FoundCertificates> {
    const { pairs } = this.#deps;
    const found = await Promise.allSettled(names.map((name) => pairs.pairFor(name)));
    const objects = found.map((one) =>
      one.status === 'fulfilled' && one.value !== null ? this.#render(one.value) : null,
    );
    const byName = new Map(objects.flatMap((one) => (one === null ? [] : [[one.metadata.name, one]])));
    const faults = found.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []));
    const stored = names.map(({ host }, index) => ({ host, stored: objects[index]?.metadata.name ?? null }));
    return { objects: [...byName.values()], faults, names: stored };
  }

  #render(pair: PemPair): KubernetesObject {
    const rendered = this.#rendered.get(pair) ?? this.#deps.renderCertificate(pair);
    this.#rendered.set(pair, rendered);
    return rendered;
  }

  #isApplied(object: KubernetesObject): boolean {
    const { copies, identity } = this.#deps;
    const found = copies.find(addressOf(object));
    if (found === undefined || !isOurs(identity, found)) return false;
    const { hash } = markOf(identity, found);
    return hash !== null && contentHash(object).startsWith(hash) && objectDrift(object, found) === null;
  }

  async #write(object: KubernetesObject, signal: AbortSignal): Promise<void> {
    const { copies, identity, writer } = this.#deps;
    const address = addressOf(object);
    const key = resourceKey(address);
    await this.#mutex.run(key, async () => {
      if (this.#isApplied(object)) return;
      const found = copies.find(address);
      if (found !== undefined && !isOurs(identity, found)) {
        throw new TerminalError(
          `Kubernetes: ${key} belongs to ${foreignOwner(identity, found)}: remove it, the provisioner writes its own`,
        );
      }
      await writer.apply(object, { site: NO_SITE, hash: contentHash(object) }, signal);
    });
  }

  async #removeUnneeded(signal: AbortSignal): Promise<void> {
    const { pairs, reports } = this.#deps;
    const { names } = await this.#certificates(this.#allNames());
    const stored = new Set(names.map((name) => name.stored));
    // Both are read at one moment, so the gateways have judged exactly these Secrets.
    const delivered = this.#delivered('certificate');
    const refused = reports.refused();
    if (refused !== null && delivered.some(({ metadata }) => !stored.has(metadata.name))) {
      await this.#removeFrom(delivered, refused, signal);
    }
    if (this.#areNamesKnown()) await pairs.retain(this.#allNames());
  }

  async #removeFrom(
    delivered: readonly KubernetesObject[],
    refused: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, writer } = this.#deps;
    const secrets = new Map(delivered.map((secret) => [secret.metadata.name, secret]));
    const read = (secret: KubernetesObject) => client.get(addressOf(secret), signal);
    const left = new Set(await this.#summaries.of(delivered, read));
    const unneeded = (names: readonly GatewayName[]) => this.#unneeded([...left], names, refused);
    for (const one of await unneeded(this.#allNames())) {
      const secret = secrets.get(one.id);
      if (secret === undefined) continue;
      const address = addressOf(secret);
      await this.#mutex.run(resourceKey(address), async () => {
        const covered = this.#allNames().filter(({ host }) => chooseCertificate([one], host) !== undefined);
        if (!(await unneeded(covered)).includes(one)) return;
        await writer.remove(address, secret.metadata.uid ?? '', signal);
        left.delete(one);
      });
    }
  }

  async #unneeded(
    certificates: readonly CertificateSummary[],
    among: readonly GatewayName[],
    refused: ReadonlySet<string>,
  ): Promise<CertificateSummary[]> {
    const { names } = await this.#certificates(among);
    // While some names aren't known, each name in a certificate may be one of them.
    const possible = this.#areNamesKnown() ? [] : certificates.flatMap((one) => one.names);
    const others = possible.map((host) => ({ host, stored: null }));
    return unneededCertificates(certificates, { names: [...names, ...others], refused });
  }

  #allNames(): GatewayName[] {
    return [...this.#names.values()].flat();
  }

  /** False if a delivered site isn't among the desired ones: its manifest can't be read, or it isn't removed yet. */
  #areNamesKnown(): boolean {
    return this.#delivered('site').every(({ metadata }) => this.#names.has(metadata.name));
  }

  #delivered(kind: 'site' | 'certificate'): KubernetesObject[] {
    const { copies, identity } = this.#deps;
    return [...copies.of('Secret')].filter(
      (found) => isOurs(identity, found) && found.metadata.labels?.[DELIVERY_LABEL] === kind,
    );
  }
}

function foreignOwner(identity: Identity, found: KubernetesObject): string {
  const { owner } = markOf(identity, found);
  return owner.kind === 'foreign' ? owner.by : 'this host';
}
