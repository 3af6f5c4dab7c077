import { LRUCache } from 'lru-cache';
import type { KubernetesClient } from '../../client/contract.ts';
import type { KubernetesObject } from '../../client/kinds.ts';
import { ownersOf, replicaSetsOf, revisionNumber, secretsNamedBy } from './replica-sets.ts';

/** The most sites for which one call lists ReplicaSets: the call's URL contains their names. */
const SITES_AT_ONCE = 50;
/** What the API server sets where a Deployment doesn't say how many old ReplicaSets it keeps. */
const DEFAULT_HISTORY = 10;
/** The most Deployments for which the Secrets of their ReplicaSets are remembered. */
const MOST_KNOWN = 10_000;

/** A site in one namespace with the Deployments that it has there; `undefined`: one is missing. */
export interface DeployedSite {
  readonly site: string;
  readonly namespace: string | null;
  readonly deployments: readonly (KubernetesObject | undefined)[];
}

/**
 * The Secrets that ReplicaSets need, old ones included. A site's Secrets are read again after a Deployment has a new
 * revision, and each time while one of its Deployments is missing or has more ReplicaSets than it keeps.
 */
export class SecretsInUse {
  readonly #client: KubernetesClient;
  readonly #namespace: string | null;
  /** By uid of a Deployment: the keys of the Secrets, and the Deployment's revision when they were read. */
  readonly #known = new LRUCache<string, { readonly revision: number; readonly secrets: readonly string[] }>({
    max: MOST_KNOWN,
  });

  /** `namespace`: that of all objects; `null`: each client's sites have their own. */
  constructor(client: KubernetesClient, namespace: string | null) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** The Secrets that ReplicaSets of these sites name, as `<namespace>/<name>`. */
  async of(sites: readonly DeployedSite[], signal: AbortSignal): Promise<ReadonlySet<string>> {
    const found = sites.map((site) => this.#knownOf(site));
    const unknown = sites.filter((_, index) => found[index] === null);
    for (let from = 0; from < unknown.length; from += SITES_AT_ONCE) {
      const some = unknown.slice(from, from + SITES_AT_ONCE);
      const place = { namespace: this.#namespace, sites: some.map(({ site }) => site) };
      const sets = await replicaSetsOf(this.#client, place, signal);
      found.push(sets.flatMap(secretsOf));
      for (const site of some) this.#remember(site, sets);
    }
    return new Set(found.flatMap((secrets) => secrets ?? []));
  }

  /** `null`: they must be read. */
  #knownOf({ deployments }: DeployedSite): readonly string[] | null {
    const found: string[] = [];
    for (const one of deployments) {
      const known = this.#known.get(one?.metadata.uid ?? '');
      if (one === undefined || known?.revision !== revisionNumber(one)) return null;
      found.push(...known.secrets);
    }
    return found;
  }

  /** Remembers nothing while the cluster has yet to remove a ReplicaSet: no new revision will show that removal. */
  #remember({ site, namespace, deployments }: DeployedSite, sets: readonly KubernetesObject[]): void {
    const own = sets.filter(
      ({ metadata }) => metadata.namespace === namespace && metadata.labels?.['tagyard/site'] === site,
    );
    const present = deployments.filter((one) => one !== undefined);
    const byOwner = present.map((one) => own.filter((set) => ownersOf(set).includes(one.metadata.uid ?? '')));
    const isSettled =
      byOwner.flat().length === own.length &&
      present.every((one, index) => (byOwner[index]?.length ?? 0) <= historyOf(one) + 1);
    if (!isSettled) return;
    for (const [index, one] of present.entries()) {
      const secrets = byOwner[index]?.flatMap(secretsOf) ?? [];
      this.#known.set(one.metadata.uid ?? '', { revision: revisionNumber(one), secrets });
    }
  }
}

function secretsOf(set: KubernetesObject): string[] {
  return secretsNamedBy(set).map((name) => `${set.metadata.namespace ?? ''}/${name}`);
}

/** How many old ReplicaSets a Deployment keeps. */
function historyOf({ spec }: KubernetesObject): number {
  const { revisionHistoryLimit } = Object(spec) as { readonly revisionHistoryLimit?: number };
  return revisionHistoryLimit ?? DEFAULT_HISTORY;
}
