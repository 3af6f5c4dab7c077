import { z } from 'zod';
import { type ClusterAccess, readClusterConfig } from './config.ts';

/** What a token of a service account says of its owner, where it belongs to a pod. Source: Kubernetes, pkg/serviceaccount. */
const claims = z.object({
  'kubernetes.io': z.object({
    pod: z.object({ uid: z.string() }),
    serviceaccount: z.object({ uid: z.string() }),
  }),
});

/**
 * The uid of the service account of the pod in which this process runs: all pods of one installation have the same, and
 * no other cluster has it. `null`: the cluster's token isn't that of a pod. Throws `TerminalError` if the configuration
 * can't be used.
 */
export async function podAccount(access: ClusterAccess): Promise<string | null> {
  const config = await readClusterConfig(access);
  const { headers } = await config.credentials().catch(() => ({ headers: {} as Record<string, unknown> }));
  const [, payload = ''] = String(headers.authorization).split('.');
  try {
    const said = claims.parse(JSON.parse(Buffer.from(payload, 'base64url').toString()));
    return said['kubernetes.io'].serviceaccount.uid;
  } catch {
    return null;
  }
}
