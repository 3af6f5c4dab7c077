import { isIP } from 'node:net';
import { z } from 'zod';
import { optionalText, textList } from '../../base/env-values.ts';

const MOST_BITS: Readonly<Record<number, number>> = { 4: 32, 6: 128 };

const range = z.string().refine((text) => {
  const [, address = '', bits = ''] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? [];
  return Number(bits) <= (MOST_BITS[isIP(address)] ?? -1);
}, 'must be an address range like 192.0.2.0/24');

const label = z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be a name in Kubernetes');
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
});
