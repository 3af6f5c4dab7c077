import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { FastifyBaseLogger } from 'fastify';
import { listenAt } from '../../base/held-port.ts';
import type { Env } from '../env.ts';
import { buildStandby } from '../http/app.ts';
import { openKubernetes } from '../kubernetes/client/client.ts';
import { Election } from '../kubernetes/client/leader.ts';
import type { State } from '../loop/state.ts';

/** The Lease's annotation with the last revision that a leader has read. */
const REVISION = 'tagyard/revision';
/** An operator's annotation: why nothing may be changed. */
const FREEZE = 'tagyard/freeze';

interface ReplicaOptions {
  readonly secrets: readonly string[];
  readonly log: FastifyBaseLogger;
  /** The last revision that this process has read as the leader; `null`: none. */
  revision(): string | null;
  /** Called with the URL at which this replica answers while it waits. */
  onStandby(url: string): void;
  /** Ends the wait. */
  readonly signal: AbortSignal;
}

/** The right of one replica to act for its cluster, and what the previous leader has passed on. */
interface Leadership {
  /** The one name of all replicas in the sites repository; machines elsewhere have another name. */
  readonly holder: string;
  /** Aborts when another replica may lead. Doesn't abort when this one gives the Lease up at its end. */
  readonly lost: AbortSignal;
  mayWrite(): boolean;
  /** Why an operator has stopped all changes; `null`: none has. */
  frozen(): string | null;
  /** The state to continue from. `saved`: the state that this replica itself has saved. */
  known(saved: State | null): (State & { readonly isLost?: boolean }) | null;
  /** Ends the standby's server, and returns its port for the daemon's own server. */
  freePort(): Promise<number>;
}

/**
 * Waits until this replica holds the Lease of the settings. `null`: the settings name no Lease, so this daemon is the
 * only one. Throws when `signal` aborts. `stack` gives the Lease up, after everything that is added to the stack later
 * has ended.
 */
export async function lead(
  env: Env,
  stack: AsyncDisposableStack,
  { secrets, log, revision, onStandby, signal }: ReplicaOptions,
): Promise<Leadership | null> {
  if (env.HOST_KIND !== 'kubernetes' || env.KUBERNETES_LEASE === undefined) return null;
  const [namespace = '', name = ''] = env.KUBERNETES_LEASE.split('/');
  // Not the appliers' client: a renewal must not wait behind their calls, or be refused like their writes.
  const client = await openKubernetes({ kubeconfig: env.KUBECONFIG, context: env.KUBERNETES_CONTEXT });
  stack.defer(() => client.close());

  let holder = (): string | null => null;
  const leads = new AbortController();
  const leader = () => (leads.signal.aborted ? null : leaderOf(holder()));
  const app = buildStandby({ secrets, logger: log, leader, ended: leads.signal });
  stack.defer(() => app.close());
  const at = { host: env.PROVISIONER_ADDRESS, port: env.PROVISIONER_PORT };
  const url = await listenAt(app, at, 'PROVISIONER_PORT');
  const port = Number(new URL(url).port);
  const election = new Election(client, {
    ...{ namespace, name },
    identity: identityOf(env.KUBERNETES_POD_ADDRESS, port),
    seconds: env.KUBERNETES_LEASE_SECONDS,
    annotations: () => {
      const read = revision();
      return read === null ? {} : { [REVISION]: read };
    },
  });
  holder = () => election.holder;
  let isEnding = false;
  stack.defer(async () => {
    isEnding = true;
    await election.close();
  });
  onStandby(url);
  log.info({ lease: env.KUBERNETES_LEASE }, 'this replica waits for the Lease');
  const held = await election.acquired(signal);
  const lost = new AbortController();
  held.addEventListener('abort', () => {
    if (!isEnding) lost.abort(held.reason);
  });
  leads.abort(new Error('this replica takes over'));
  log.info({ lease: env.KUBERNETES_LEASE }, 'this replica leads');

  const annotation = (key: string) => election.metadata?.annotations?.[key];
  const passedOn = annotation(REVISION) ?? null;
  return {
    holder: `lease-${election.metadata?.uid}`,
    lost: lost.signal,
    mayWrite: () => election.mayWrite(),
    frozen() {
      const why = annotation(FREEZE);
      return why === undefined
        ? null
        : `the annotation ${FREEZE} of the Lease ${name} stops all changes: ${why.slice(0, 200)}`;
    },
    known: (saved) => stateAfter(passedOn, saved),
    async freePort() {
      await app.close();
      return port;
    },
  };
}

/**
 * Of another leader's state only the last revision is known. It is enough to tell a branch that is gone from an empty
 * one, and to notice a rewritten history. Everything else counts as lost. If that revision is the saved one, either
 * this replica led last, or the last leader has read nothing newer.
 */
function stateAfter(passedOn: string | null, saved: State | null) {
  if (passedOn === null || saved?.revision === passedOn) return saved;
  return { version: 1 as const, revision: passedOn, sites: [], operations: [], isLost: true };
}

/** `<host>_<random>`, and `@<address>:<port>` where other replicas reach this one. */
function identityOf(address: string | undefined, port: number): string {
  const name = `${hostname()}_${randomUUID()}`;
  if (address === undefined) return name;
  return `${name}@${address.includes(':') ? `[${address}]` : address}:${port}`;
}

function leaderOf(identity: string | null) {
  if (identity === null) return null;
  const [name = '', at] = identity.split('@');
  return { name, url: at === undefined ? null : `http://${at}` };
}
