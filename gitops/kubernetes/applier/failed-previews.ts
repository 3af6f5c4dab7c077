import type { Identity } from '../../../base/ownership.ts';
import type { KubernetesClient } from '../client/contract.ts';
import type { KubernetesObject } from '../client/kinds.ts';
import { readReport, type StartFailure } from '../delivery/report.ts';
import { newestPodFault, podRefusal } from './rollout.ts';
import type { Copies } from './state/copies.ts';
import { deploymentState } from './state/deployment.ts';
import { MANAGER } from './state/mark.ts';
import type { WantedSpecs } from './state/wanted-specs.ts';

/** The cause if nothing more is known: the pods are gone, or show no fault. */
const NOT_READY = 'no pod was ready within 55 seconds';

interface Failure {
  /** Which attempts of which gateways have failed. */
  readonly attempts: string;
  /** `null`: not read yet. */
  readonly seen: Seen | null;
}

/** What was seen when a failure was reported. */
interface Seen {
  readonly cause: string;
  /** When the Deployment was applied last, by the API server's clock. */
  readonly applied: string | undefined;
}

interface FailedPreviewsDeps {
  readonly client: KubernetesClient;
  readonly identity: Identity;
  /** Of the sites' objects. */
  readonly copies: Copies;
  readonly wanted: WantedSpecs;
  /** Of the Leases in the gateways' namespace. */
  readonly reports: Copies;
}

/**
 * The preview servers on demand that didn't start for their last request, as gateways report them. The cause is read
 * once for each attempt, while its pod is there.
 */
export class FailedPreviews {
  readonly #deps: FailedPreviewsDeps;
  readonly #ended = new AbortController();
  /** By service (`<namespace>/<name>`); its Deployment has the same name. */
  readonly #failures = new Map<string, Failure>();

  constructor(deps: FailedPreviewsDeps) {
    this.#deps = deps;
    const { signal } = this.#ended;
    deps.reports.onChange('Lease', () => this.#note(), signal);
    const ready = deps.reports.ready(signal).then(() => this.#note());
    ready.catch(() => undefined); // the next change of a Lease is noted
  }

  /**
   * Why a site's preview server didn't start for its last request, and what to do; `null`: it did, or has had no
   * request since its Deployment was changed.
   */
  messageOf(site: string): string | null {
    for (const [service, { seen }] of this.#failures) {
      const spec = this.#deps.wanted.find(service);
      if (spec?.initialReplicas !== 0 || spec.manifest.site !== site || seen === null) continue;
      const deployment = this.#deps.copies.find(spec.address);
      if (deployment === undefined || deploymentState(deployment).available > 0) continue;
      // Another template has replaced the one that failed.
      if (appliedAt(deployment) !== seen.applied) continue;
      return `the preview server didn’t start for its last request: ${spec.redacted(seen.cause)}. Correct it in the manifest or the cluster: the next request starts it again`;
    }
    return null;
  }

  close(): void {
    this.#ended.abort();
  }

  #note(): void {
    const reported = new Map<string, { attempts: string; failure: StartFailure }>();
    for (const lease of this.#deps.reports.of('Lease')) {
      for (const [service, failure] of Object.entries(readReport(lease)?.failed ?? {})) {
        const before = reported.get(service)?.attempts ?? '';
        reported.set(service, { attempts: `${before} ${lease.metadata.name}/${failure.number}`, failure });
      }
    }
    for (const service of this.#failures.keys()) if (!reported.has(service)) this.#failures.delete(service);
    for (const [service, { attempts, failure }] of reported) {
      const known = this.#failures.get(service);
      if (known?.attempts === attempts) continue;
      this.#failures.set(service, { attempts, seen: known?.seen ?? null });
      void this.#read(service, attempts, failure);
    }
  }

  async #read(service: string, attempts: string, { reason }: StartFailure): Promise<void> {
    const current = () => {
      const failure = this.#failures.get(service);
      return failure?.attempts === attempts ? failure : undefined;
    };
    try {
      await this.#deps.copies.ready(this.#ended.signal);
      const [namespace = '', name = ''] = service.split('/');
      const deployment = this.#deps.copies.find({ kind: 'Deployment', namespace, name });
      if (deployment === undefined) return;
      const read = reason === '' ? await this.#cause(deployment) : reason;
      const failure = current();
      if (failure === undefined) return;
      const applied = appliedAt(deployment);
      // What was wrong with an earlier template may be right with this one.
      const known = failure.seen?.applied === applied ? failure.seen : null;
      this.#failures.set(service, { attempts, seen: { cause: read ?? known?.cause ?? NOT_READY, applied } });
    } catch {
      // Read again with the next change of a Lease, a few seconds later.
      if (current() !== undefined) this.#failures.delete(service);
    }
  }

  /** Why the pods don't start; `null`: nothing is known. */
  async #cause(deployment: KubernetesObject): Promise<string | null> {
    const { client, copies, identity } = this.#deps;
    const refusal = podRefusal(deployment, { copies, identity });
    if (refusal !== null) return refusal.message;
    const { signal } = this.#ended;
    return (await newestPodFault(deployment, { client, isFinal: true }, signal))?.message ?? null;
  }
}

/** When the newest of our applies that changed the Deployment was made. */
function appliedAt({ metadata: { managedFields = [] } }: KubernetesObject): string | undefined {
  const ours = managedFields.find(({ manager, operation }) => manager === MANAGER && operation === 'Apply');
  return ours?.time;
}
