import { appendFileSync } from 'node:fs';
import { openKubernetes } from '../../../gitops/kubernetes/client/client.ts';
import { Election } from '../../../gitops/kubernetes/client/leader.ts';

/**
 * `node leader-process.ts <kubeconfig> <identity> <file> <seconds>`: writes a line `<identity> <time>` every few
 * milliseconds while it leads. The time is in milliseconds of the machine's monotonic clock, one for all processes.
 */
const [, , kubeconfig = '', identity = '', file = '', seconds] = process.argv;
const client = await openKubernetes({ kubeconfig });
const election = new Election(client, {
  namespace: 'default',
  name: 'leader',
  identity,
  seconds: Number(seconds),
});
process.once('SIGTERM', () => void election.close().then(() => process.exit(0)));
setInterval(() => {
  if (election.mayWrite()) appendFileSync(file, `${identity} ${process.hrtime.bigint() / 1_000_000n}\n`);
}, 5);
