import { isIP } from 'node:net';
import { z } from 'zod';
import { optionalText, textList } from '../../../base/env-values.ts';

const MOST_BITS: Readonly<Record<number, number>> = { 4: 32, 6: 128 };

const parts = (text: string) => /^([^/%]+)\/(\d{1,3})$/.exec(text) ?? [];
const range = z
  .string()
  .refine((text) => {
    const [, address = '', bits = ''] = parts(text);
    return Number(bits) <= (MOST_BITS[isIP(address)] ?? -1);
  }, 'must be an address range like 192.0.2.0/24')
  .refine(
    (text) => {
      const [, address = '', length] = parts(text);
      return isIP(address) === 0 || !bitsOf(address).slice(Number(length)).includes('1');
    },
    // The API server refuses such a range.
    'must begin at the first address of its range: 192.0.2.0/24, not 192.0.2.1/24',
  );

/** An address as zeros and ones. */
function bitsOf(address: string): string {
  const binary = (number: number, length: number) => number.toString(2).padStart(length, '0');
  if (isIP(address) === 4) {
    return address
      .split('.')
      .map((byte) => binary(Number(byte), 8))
      .join('');
  }
  // `URL` writes an IPv4 address at the end of an IPv6 address as two groups.
  const [head = [], tail = []] = new URL(`http://[${address}]`).hostname
    .slice(1, -1)
    .split('::')
    .map((groups) => groups.split(':').filter(Boolean));
  const zeros = Array<string>(8 - head.length - tail.length).fill('0');
  return [...head, ...zeros, ...tail].map((group) => binary(Number.parseInt(group, 16), 16)).join('');
}

const label = z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be a name of a-z, 0-9 and -');
const serviceName = z
  .string()
  .regex(/^[a-z0-9-]{1,63}\/[a-z0-9-]{1,63}$/, 'must be <namespace>/<name> of a Service');

/** The cluster's part of the environment. */
export const kubernetesSettings = z.object({
  KUBECONFIG: optionalText.describe(
    "The paths of the cluster's kubeconfig. Unset: the account of the pod that the daemon runs in, otherwise `~/.kube/config`.",
  ),
  KUBERNETES_CONTEXT: optionalText.describe('The context of the kubeconfig. Unset: its current one.'),
  KUBERNETES_NAMESPACE: optionalText
    .pipe(label.optional())
    .describe(
      'One namespace for the objects of all clients, which exists already. Unset: one for each client, which the provisioner makes and removes.',
    ),
  KUBERNETES_ADMIT_CIDRS: textList
    .default([])
    .pipe(z.array(range))
    .describe("Address ranges from which the sites' ports may be reached."),
  KUBERNETES_GATEWAY_NAMESPACE: optionalText
    .pipe(label.optional())
    .describe(
      "The namespace of the gateways in front of the sites. Its pods may reach the sites' ports, and the provisioner writes what the gateways serve into it, as Secrets. If you set it, TLS_DIR or ACME_DIRECTORY_URL, and EDGE_UPSTREAM, are needed as on a machine.",
    ),
  KUBERNETES_GATEWAY_SERVICE: optionalText
    .pipe(serviceName.optional())
    .describe("`<namespace>/<name>` of the Service whose address the sites' names get."),
  KUBERNETES_POLICY_SERVICE: optionalText
    .pipe(serviceName.optional())
    .describe(
      "`<namespace>/<name>` of the Service whose port 443 leads to the gateways' GATEWAY_POLICY_PORT, where pods read the policy scripts of their sites. Without it, a site that has a policy script is refused.",
    ),
  KUBERNETES_CLUSTER_DOMAIN: z
    .string()
    .regex(/^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/, 'must be a domain like cluster.local')
    .default('cluster.local')
    .describe("The domain of the cluster's DNS."),
});
