import { TerminalError } from '../../base/errors.ts';
import { KeyedMutex } from '../../base/limit.ts';
import { type Log, warner } from '../../base/log.ts';
import { contentHash, type Identity } from '../../base/ownership.ts';
import { addressOf } from '../../clients/kubernetes/address.ts';
import type { KubernetesObject } from '../../clients/kubernetes/kinds.ts';
import type { InstanceDocument } from '../../delivery/documents.ts';
import { DELIVERY_LABEL } from '../../delivery/secrets.ts';
import type { Manifest } from '../../manifest/schema.ts';
import type { PemPair } from './gateway-objects.ts';
import type { Copies } from './state/copies.ts';
import { objectDrift } from './state/drift.ts';
import { isOurs, markOf, NO_SITE } from './state/mark.ts';
import { resourceKey } from './state/object-spec.ts';
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
  readonly copies: Copies;
  readonly writer: Writer;
  readonly identity: Identity;
  readonly log: Log;
  readonly pairs: CertificatePairs;
  instance(): InstanceDocument;
  renderInstance(document: InstanceDocument): KubernetesObject;
  renderCertificate(pair: PemPair): KubernetesObject;
  /** Brings the data for the document of the instance up to date; never throws. */
  refresh(): Promise<void>;
}

interface FoundCertificates {
  readonly objects: readonly KubernetesObject[];
  /** Why some names have none; the other names are served all the same. */
  readonly faults: readonly unknown[];
  /** True if each name has a certificate. */
  readonly isComplete: boolean;
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

  /** What these names need, but isn't delivered as it must be; `null`: nothing. */
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

  /** Starts, in the background, to deliver the document of the instance and to remove unused certificates. */
  startHousekeeping(signal: AbortSignal): void {
    this.#housekeeping = this.#housekeeping
      .then(async () => {
        await this.#deps.refresh();
        await this.#write(this.#instance(), signal);
        await this.#removeUnused(signal);
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
    const objects = found.flatMap((one) =>
      one.status === 'fulfilled' && one.value !== null ? [this.#render(one.value)] : [],
    );
    const byName = new Map(objects.map((object) => [object.metadata.name, object]));
    const faults = found.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []));
    return { objects: [...byName.values()], faults, isComplete: objects.length === names.length };
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

  async #removeUnused(signal: AbortSignal): Promise<void> {
    const { copies, identity, pairs, writer } = this.#deps;
    const certificates = [...copies.of('Secret')].filter(
      (found) => isOurs(identity, found) && found.metadata.labels?.[DELIVERY_LABEL] === 'certificate',
    );
    const used = await this.#used();
    for (const found of certificates.filter(({ metadata }) => used?.has(metadata.name) === false)) {
      const address = { ...addressOf(found), kind: 'Secret' } as const;
      await this.#mutex.run(resourceKey(address), async () => {
        const isUnused = (await this.#used())?.has(address.name) === false;
        if (isUnused) await writer.remove(address, found.metadata.uid ?? '', signal);
      });
    }
    if (used !== null) await pairs.retain([...this.#names.values()].flat());
  }

  /** The Secrets of the certificates that names need. `null`: unknown, as a manifest or a certificate can't be read. */
  async #used(): Promise<ReadonlySet<string> | null> {
    const { copies, identity } = this.#deps;
    const ofSites = [...copies.of('Secret')].filter(
      (found) => isOurs(identity, found) && found.metadata.labels?.[DELIVERY_LABEL] === 'site',
    );
    if (!ofSites.every(({ metadata }) => this.#names.has(metadata.name))) return null;
    const { objects, isComplete } = await this.#certificates([...this.#names.values()].flat());
    // A certificate that is missing may be lost from the store only: what was delivered stays valid.
    return !isComplete ? null : new Set(objects.map(({ metadata }) => metadata.name));
  }
}

function foreignOwner(identity: Identity, found: KubernetesObject): string {
  const { owner } = markOf(identity, found);
  return owner.kind === 'foreign' ? owner.by : 'this host';
}
