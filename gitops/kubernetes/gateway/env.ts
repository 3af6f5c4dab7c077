import { z } from 'zod';
import { optionalText, portNumber, textList } from '../../../base/env-values.ts';

/** The environment of a gateway's agent; `.env.example` explains each variable. */
const settings = z.object({
  TAGYARD_INSTANCE: z
    .string()
    .regex(/^[a-z0-9-]{1,12}$/)
    .default('tagyard'),
  GATEWAY_DIR: z.string().startsWith('/').default('/var/lib/tagyard-gateway'),
  GATEWAY_NAMESPACE: z.string().min(1),
  POD_NAME: z.string().min(1),
  POD_UID: optionalText,
  GATEWAY_LISTEN: textList.default(['0.0.0.0']),
  GATEWAY_HTTP_PORT: portNumber.default(8080),
  GATEWAY_TLS_PORT: portNumber.default(8443),
  GATEWAY_POLICY_PORT: portNumber.default(8444),
  GATEWAY_HEALTH_ADDRESS: z.string().default('0.0.0.0'),
  GATEWAY_HEALTH_PORT: portNumber.default(8081),
  GATEWAY_PROXY_PROTOCOL_FROM: textList.pipe(z.array(z.union([z.cidrv4(), z.cidrv6()]))).default([]),
  GATEWAY_ANNOUNCE_SECONDS: z.coerce.number().min(0).max(600).default(0),
  GATEWAY_DRAIN_SECONDS: z.coerce.number().min(0).max(3_600).default(40),
  PREVIEW_IDLE_SECONDS: z.coerce.number().positive().default(900),
  NGINX_BIN: z.string().default('nginx'),
  NAME_REQUESTS_PER_SECOND: z.coerce.number().int().min(1).max(1_000_000).default(500),
  NAME_CONNECTIONS: z.coerce.number().int().min(1).max(65_535).default(500),
  GATEWAY_LOG_MEGABYTES: z.coerce.number().min(1).max(1_000_000).default(100),
  EDGE_CA_FILE: optionalText,
  KUBECONFIG: optionalText,
  KUBERNETES_CONTEXT: optionalText,
  LOG_LEVEL: z.string().default('info'),
});
export type GatewayEnv = z.output<typeof settings>;

/** Throws an `Error` whose message is one line with every wrong variable and what it must be. */
export function readGatewayEnv(source: NodeJS.ProcessEnv): GatewayEnv {
  const result = settings.safeParse(source);
  if (result.success) return result.data;
  const faults = result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw new Error(`the environment is wrong: ${faults.join('; ')}`);
}
