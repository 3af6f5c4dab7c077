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

/** The cluster's part of the environment; `.env.example` explains each variable. */
export const kubernetesSettings = z.object({
  KUBECONFIG: optionalText,
  KUBERNETES_CONTEXT: optionalText,
  KUBERNETES_NAMESPACE: optionalText.pipe(label.optional()),
  KUBERNETES_ADMIT_CIDRS: textList.default([]).pipe(z.array(range)),
  KUBERNETES_GATEWAY_NAMESPACE: optionalText.pipe(label.optional()),
  KUBERNETES_GATEWAY_SERVICE: optionalText.pipe(serviceName.optional()),
  KUBERNETES_POLICY_SERVICE: optionalText.pipe(serviceName.optional()),
  KUBERNETES_CLUSTER_DOMAIN: z
    .string()
    .regex(/^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/, 'must be a domain like cluster.local')
    .default('cluster.local'),
});
