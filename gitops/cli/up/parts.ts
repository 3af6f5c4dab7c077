import { fileURLToPath } from 'node:url';
import { siblingUrl } from '../../../base/runtime/sibling.ts';
import type { Home, Instance } from '../instance/home.ts';
import { AUDIENCE, issuerOf, LOGIN_CLIENT, OPERATOR } from '../instance/issuer.ts';
import { LOGIN_ACCOUNTS } from './accounts.ts';
import type { ChildSpec } from './child.ts';
import type { Drivers } from './drivers.ts';
import type { Ports } from './ports.ts';

/** The zone of the embedded instance. Browsers resolve every name under `localhost` to loopback (RFC 6761, 6.3). */
const ZONE = 'tagyard.localhost';
const HOST_NAME = 'home';

/** What the edge and the provisioner need. */
export interface HostSetup {
  readonly home: Home;
  readonly instance: Instance;
  readonly ports: Ports;
  readonly drivers: Drivers;
  readonly env: NodeJS.ProcessEnv;
  /** The local CA's certificate (PEM). */
  readonly caFile: string;
  readonly ageIdentityFile: string;
  /** The addresses that the proxy listens on: loopback and, with Docker, the bridge that containers reach. */
  readonly proxyAddresses: readonly string[];
}

export interface Setup extends HostSetup {
  /** `{ snippet, edgeUrl, webTagId, vendorUrl, consoleUrl }` of the demo site. The shop reads the file at every request. */
  readonly demoSiteFile: string;
  readonly tagServerImage: string;
}

/** `script`: the part's entry file from the project's root, without its extension. */
function part(setup: HostSetup, name: string, script: string, env: Record<string, string>): ChildSpec {
  return {
    name,
    script: fileURLToPath(siblingUrl(`../../../${script}`, import.meta.url)),
    env,
    logFile: setup.home.at('logs', `${name}.log`),
  };
}

/** The embedded Cloudflare: its API and the worker. */
export function edgePart(setup: HostSetup): ChildSpec {
  const { home, instance, ports, env, caFile } = setup;
  return part(setup, 'edge', 'sites/local/cloudflare/main', {
    EDGE_PORT: String(ports.edge),
    CLOUDFLARE_PORT: String(ports.cloudflare),
    EDGE_STATE_DIR: home.at('edge'),
    EDGE_DOMAIN: ZONE,
    CLOUDFLARE_API_TOKEN: instance.cloudflareToken,
    CLOUDFLARE_EMULATOR: env.CLOUDFLARE_EMULATOR || 'home',
    CLOUDFLARE_EMULATOR_CALLS: env.CLOUDFLARE_EMULATOR_CALLS || '1200',
    CLOUDFLARE_EMULATOR_RECORDS: env.CLOUDFLARE_EMULATOR_RECORDS || '200',
    HOP_SECRET: instance.hopSecret,
    INGEST_URL: `http://127.0.0.1:${ports.management}/ingest`,
    INGEST_SECRET: instance.ingestSecret,
    TAG_UPSTREAM: env.TAG_UPSTREAM || `http://127.0.0.1:${ports.vendor}`,
    CONFIG_TTL_SECONDS: env.CONFIG_TTL_SECONDS || '2',
    EGRESS_CA_FILE: caFile,
    VERIFICATION_PORT: String(ports.verification),
    VERIFICATION_SECRET: instance.verificationSecret,
  });
}

/** The base URL of the emulated API. */
export function cloudflareUrl({ ports }: HostSetup): string {
  return `http://127.0.0.1:${ports.cloudflare}/client/v4`;
}

export function provisionerPart(setup: HostSetup, zone: { accountId: string; zoneId: string }): ChildSpec {
  const { home, instance, ports, drivers, env } = setup;
  return part(setup, 'provisioner', 'gitops/main', {
    TAGYARD_INSTANCE: instance.instance,
    HOST_NAME,
    SITES_REPO: home.at('sites.git'),
    STATE_DIR: home.at('provisioner'),
    INFRA_SECRET: instance.infraSecret,
    HOP_SECRET: instance.hopSecret,
    PROVISIONER_PORT: String(ports.provisioner),
    AGE_IDENTITY_FILE: setup.ageIdentityFile,
    CLOUDFLARE_API_URL: cloudflareUrl(setup),
    CLOUDFLARE_API_TOKEN: instance.cloudflareToken,
    CLOUDFLARE_ACCOUNT_ID: zone.accountId,
    CLOUDFLARE_ZONE_ID: zone.zoneId,
    EDGE_DOMAIN: ZONE,
    ...(env.CLOUDFLARE_RATE ? { CLOUDFLARE_RATE: env.CLOUDFLARE_RATE } : {}),
    HOST_ADDRESS: '127.0.0.1',
    PROXY_DRIVER: drivers.proxy.name,
    ...(drivers.proxy.bin === undefined ? {} : { NGINX_BIN: drivers.proxy.bin }),
    ...(env.GEOIP_DATABASE ? { GEOIP_DATABASE: env.GEOIP_DATABASE } : {}),
    PROXY_LISTEN: setup.proxyAddresses.join(','),
    PROXY_HTTP_PORT: String(ports.proxy),
    PROXY_TLS_PORT: String(ports.proxyTls),
    EDGE_PUBLIC_URL: `http://{host}:${ports.edge}`,
    EDGE_UPSTREAM: `http://127.0.0.1:${ports.edge}`,
    LOCAL_CA_DIR: home.at('ca'),
    CONTAINERS_DRIVER: drivers.containers.name,
    LOOPBACK_SUBNET: instance.loopbackSubnet,
    CONTAINER_FIREWALL: drivers.isolation.name === 'firewall' ? 'enforce' : 'off',
    ...(env.CONTAINER_NETWORKS ? { CONTAINER_NETWORKS: env.CONTAINER_NETWORKS } : {}),
    ...(env.CONTAINER_REACHABLE ? { CONTAINER_REACHABLE: env.CONTAINER_REACHABLE } : {}),
    CONTAINER_CA_FILE: setup.caFile,
    DRAIN_SECONDS: env.DRAIN_SECONDS || '0',
  });
}

/** Where pages load the vendor's scripts from if the edge fails. */
export function pageVendorUrl({ env, ports }: Setup): string {
  return env.TAG_UPSTREAM || `http://vendor.localhost:${ports.vendor}`;
}

export function managementPart(setup: Setup, jwksUrl: string): ChildSpec {
  const { home, instance, ports, env } = setup;
  const management = part(setup, 'management', 'management/main', {
    MANAGEMENT_PORT: String(ports.management),
    INFRA_PROVISIONER_URL: `http://127.0.0.1:${ports.provisioner}`,
    INFRA_SECRET: instance.infraSecret,
    RAW_LOGS_API_URL: cloudflareUrl(setup),
    RAW_LOGS_API_TOKEN: instance.cloudflareToken,
    RAW_LOGS_API_RATE: '1000',
    // With the real limits, each read of the raw logs counts as a call, too, so fewer are made.
    RAW_LOGS_POLL_SECONDS: env.CLOUDFLARE_EMULATOR === 'real' ? '1' : '0.25',
    VERIFICATION_WORKER_URL: `http://127.0.0.1:${ports.verification}`,
    VERIFICATION_SECRET: instance.verificationSecret,
    INGEST_SECRET: instance.ingestSecret,
    SITES_REPO: home.at('sites.git'),
    STATE_DIR: home.at('management'),
    PORT_POOL: env.PORT_POOL || '20000-20999',
    AUTH_JWKS_URL: jwksUrl,
    AUTH_ISSUER: issuerOf(instance),
    AUTH_AUDIENCE: AUDIENCE,
    SUPER_ADMINS: OPERATOR,
    ALLOW_LOOPBACK_TARGETS: 'true',
    OIDC_CLIENT_ID: LOGIN_CLIENT,
    OIDC_CLIENT_SECRET: instance.loginSecret,
    OIDC_LOGIN_HINTS: JSON.stringify(LOGIN_ACCOUNTS.map(({ subject: hint, ...rest }) => ({ hint, ...rest }))),
    PUBLIC_URL: `http://127.0.0.1:${ports.management}`,
    AGE_RECIPIENT: instance.age.recipient,
    FORWARDER_KEY: instance.forwarderKey,
    DOMAIN_PROOF: env.DOMAIN_PROOF || 'off',
    DEFAULT_CONSENT: env.DEFAULT_CONSENT || 'opt_out',
    DEFAULT_TLS: env.DEFAULT_TLS || 'files',
    ...(env.PROOF_RESOLVERS ? { PROOF_RESOLVERS: env.PROOF_RESOLVERS } : {}),
    EDGE_DOMAIN: ZONE,
    ORIGIN_DOMAIN: ZONE,
    EDGE_PUBLIC_URL: `http://{host}:${ports.edge}`,
    CUSTOM_PUBLIC_URL: `http://{host}:${ports.proxy}`,
    TAG_UPSTREAM: pageVendorUrl(setup),
    HOST_NAME,
    TAG_SERVER_IMAGE: setup.tagServerImage,
  });
  // Compiles WebAssembly once, by the fast compiler. For PGlite's ten megabytes of code, the optimising one needs
  // 200 to 300 MB, which it never returns.
  return { ...management, v8Options: ['--liftoff-only'] };
}
