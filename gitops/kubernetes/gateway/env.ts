import { z } from 'zod';
import { optionalText, portNumber, textList } from '../../../base/env-values.ts';
import { parseSettings } from '../../../base/settings.ts';

/** The environment of a gateway's agent. */
export const gatewaySettings = z.object({
  TAGYARD_INSTANCE: z
    .string()
    .regex(/^[a-z0-9-]{1,12}$/)
    .default('tagyard'),
  GATEWAY_DIR: z
    .string()
    .startsWith('/')
    .default('/var/lib/tagyard-gateway')
    .describe(
      'The folder with what the gateway serves. On an emptyDir it survives a restart of the container; with `medium: Memory`, keys are on no disk.',
    ),
  GATEWAY_NAMESPACE: z.string().min(1).describe("The namespace with the gateways' Secrets and Leases."),
  POD_NAME: z.string().min(1).describe('The pod that this gateway runs in (from the Downward API).'),
  POD_UID: optionalText.describe("That pod's uid."),
  GATEWAY_LISTEN: textList
    .default(['0.0.0.0'])
    .describe(
      'The addresses on which the gateway listens for visitors and for pods that read policy scripts.',
    ),
  GATEWAY_HTTP_PORT: portNumber.default(8080).describe('The port for visitors, HTTP.'),
  GATEWAY_TLS_PORT: portNumber.default(8443).describe('The port for visitors, TLS.'),
  GATEWAY_POLICY_PORT: portNumber.default(8444).describe('The port for pods that read policy scripts.'),
  GATEWAY_HEALTH_ADDRESS: z
    .string()
    .default('0.0.0.0')
    .describe(
      "The address for the kubelet's probes `/ready` and `/alive`, and for a load balancer's `/serving`.",
    ),
  GATEWAY_HEALTH_PORT: portNumber.default(8081).describe('The port for these probes.'),
  GATEWAY_PROXY_PROTOCOL_FROM: textList
    .pipe(z.array(z.union([z.cidrv4(), z.cidrv6()])))
    .default([])
    .describe(
      "The address ranges of the load balancer before the gateways, if it speaks the PROXY protocol. Every connection must then begin with the protocol's header, which counts only from these ranges. Unset: no connection may begin with that header.",
    ),
  GATEWAY_ANNOUNCE_SECONDS: z.coerce
    .number()
    .min(0)
    .max(600)
    .default(0)
    .describe(
      'When the pod ends, `/ready` answers 503 for so many seconds while connections are still taken; this must be longer than the load balancer takes to notice the end.',
    ),
  GATEWAY_DRAIN_SECONDS: z.coerce
    .number()
    .min(0)
    .max(3_600)
    .default(40)
    .describe('The seconds that requests in flight may take after that.'),
  PREVIEW_IDLE_SECONDS: z.coerce.number().positive().default(900),
  NGINX_BIN: z.string().default('nginx'),
  NAME_REQUESTS_PER_SECOND: z.coerce.number().int().min(1).max(1_000_000).default(500),
  NAME_CONNECTIONS: z.coerce.number().int().min(1).max(65_535).default(500),
  GATEWAY_LOG_MEGABYTES: z.coerce
    .number()
    .min(1)
    .max(1_000_000)
    .default(100)
    .describe('The most megabytes of each log with its rotated files.'),
  EDGE_CA_FILE: optionalText.describe("The CA of the edge, if it isn't one of the system's."),
  KUBECONFIG: optionalText,
  KUBERNETES_CONTEXT: optionalText,
  LOG_LEVEL: z.string().default('info'),
});
export type GatewayEnv = z.output<typeof gatewaySettings>;

/** Throws as `parseSettings` does. */
export function readGatewayEnv(source: NodeJS.ProcessEnv): GatewayEnv {
  return parseSettings(gatewaySettings, source);
}
