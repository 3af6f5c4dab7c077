import { BlockList, connect, isIP } from 'node:net';
import { checkPart, NotChecked } from '../report/check-part.ts';
import type { PartCheck } from '../report/report.ts';

/** Milliseconds that a connection attempt may take. It takes all of them if packets are dropped. */
const CONNECT_MS = 1_000;
/** No tag server listens there (tcpmux), and no policy admits it. */
const CLOSED_PORT = 1;

/** A pod that is ready. */
interface PodAddress {
  /** For messages. */
  readonly name: string;
  readonly address: string;
  readonly port: number;
}

interface PolicyTrial {
  /** Pods of sites, whose policies refuse all but `admitted`. */
  readonly pods: readonly PodAddress[];
  /** Other pods, which show that this process reaches the network of pods at all. */
  readonly others: readonly PodAddress[];
  /** The ranges that the policies admit. */
  readonly admitted: readonly string[];
  /** This process runs in a namespace that they admit. */
  readonly isAdmitted: boolean;
}

/**
 * `silent`: no answer in time, as when packets are dropped. `from`: the local address of a connection that was made.
 */
type Outcome = { readonly kind: 'made'; readonly from: string } | { readonly kind: 'refused' | 'silent' };

/**
 * Tries a connection that the policies of the sites refuse. A cluster accepts policies silently even if nothing
 * enforces them, so only a try shows whether they are enforced. If nothing can be tried, the check is `skipped`, as
 * unproven. Never throws.
 */
export async function checkNetworkPolicies(
  trial: (signal: AbortSignal) => Promise<PolicyTrial>,
): Promise<PartCheck> {
  const unproven = (why: string) => new NotChecked(`unproven: ${why}`);
  return await checkPart('network_policies', {
    fix: 'open',
    async ask(signal) {
      const { pods, others, admitted, isAdmitted } = await trial(signal);
      if (pods.length === 0) throw unproven('no pod of a site is ready');
      const outcomes = await Promise.all(pods.map((pod) => tried(pod)));
      const made = outcomes.findIndex(({ kind }) => kind === 'made');
      const [pod, outcome] = [pods[made], outcomes[made]];
      if (pod === undefined || outcome?.kind !== 'made') {
        const answers = await Promise.all(others.map((other) => tried(other)));
        const other = others[answers.findIndex(({ kind }) => kind === 'made')];
        if (other === undefined) throw unproven('this process reaches no pod of the cluster');
        return `enforced: ${pods[0]?.name} refuses a connection from here, and ${other.name} doesn’t`;
      }
      if (!isAdmitted && !contains(admitted, outcome.from)) {
        throw new Error(
          `not enforced: ${pod.name} takes a connection from ${outcome.from}, which no policy admits`,
        );
      }
      // A port on which nothing listens answers at once, unless something drops what isn't admitted.
      const { kind } = await tried({ ...pod, port: CLOSED_PORT });
      if (kind === 'silent') return `enforced: ${pod.name} takes connections from here on its own port only`;
      throw unproven(
        'the policies admit this process; try it from a pod of another namespace (docs/kubernetes.md)',
      );
    },
  });
}

async function tried({ address, port }: PodAddress): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const socket = connect({ host: address, port, timeout: CONNECT_MS });
  socket.once('connect', () => resolve({ kind: 'made', from: socket.localAddress ?? '' }));
  socket.once('timeout', () => resolve({ kind: 'silent' }));
  socket.once('error', () => resolve({ kind: 'refused' }));
  return await promise.finally(() => socket.destroy());
}

function contains(ranges: readonly string[], address: string): boolean {
  const list = new BlockList();
  for (const range of ranges) {
    const [start = '', bits = ''] = range.split('/');
    list.addSubnet(start, Number(bits), isIP(start) === 4 ? 'ipv4' : 'ipv6');
  }
  return list.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
}
