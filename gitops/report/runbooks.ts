/** A check of an installation: docs/runbooks.md has a section for each. */
interface Runbook {
  /** What passes. */
  readonly checks: string;
  /** The settings that a finding may be about. */
  readonly settings: readonly string[];
  /** What to do, by the kind of the finding. */
  readonly fixes: Readonly<Record<string, string>>;
}

/**
 * All checks of `tagyard check`, of each start and of `tagyard doctor`, in the order of docs/runbooks.md, which is written
 * from them. A check without an entry doesn't compile.
 */
export const RUNBOOKS = {
  settings: {
    checks: 'Each setting has a value that can be used, and no setting is left of an earlier version.',
    settings: [],
    fixes: {
      wrong: 'Correct the named setting (docs/reference/settings.md) in the environment or in .env.',
    },
  },
  clock: {
    checks: 'The clock of this machine agrees with those of the services that it calls, to a minute.',
    settings: [],
    fixes: {
      wrong: 'Set the clock by the network: timedatectl set-ntp true (or chrony), then check timedatectl.',
    },
  },
  disk: {
    checks: 'The disk of STATE_DIR has room, and a file can be written there.',
    settings: ['STATE_DIR'],
    fixes: {
      full: 'Free space on the disk of STATE_DIR, or enlarge it: a full disk stops every change. Let this user write there.',
    },
  },
  ports: {
    checks: 'The ports of this machine’s daemons are free, or its own daemons have them.',
    settings: ['PROVISIONER_PORT', 'PROXY_HTTP_PORT', 'PROXY_TLS_PORT', 'MANAGEMENT_PORT'],
    fixes: { taken: 'Stop the named process, or set the named setting to another port.' },
  },
  key_files: {
    checks: 'Only their owner can read files with secrets.',
    settings: [
      'AGE_IDENTITY_FILE',
      'DNS_TSIG_SECRET_FILE',
      'ACME_EAB_HMAC_KEY_FILE',
      'SITES_REPO_PASSWORD_FILE',
      'SITES_SIGNING_KEY_FILE',
      'SITES_WEBHOOK_SECRET_FILE',
    ],
    fixes: {
      open: 'Give the named file the mode 0600 (chmod 600) and the service’s user as its owner. If others may have read it, replace the secret.',
    },
  },
  age_identity: {
    checks: 'AGE_IDENTITY_FILE has identities, and AGE_RECIPIENT belongs to one of them.',
    settings: ['AGE_IDENTITY_FILE', 'AGE_RECIPIENT'],
    fixes: {
      unreadable:
        'Restore AGE_IDENTITY_FILE from a backup, or make one with age-keygen, readable by this user.',
      other:
        'Set AGE_RECIPIENT to the recipient of AGE_IDENTITY_FILE (age-keygen -y), or add its identity to that file.',
    },
  },
  docker_disk: {
    checks: 'The disk of Docker’s images and containers has room.',
    settings: ['CONTAINERS_DRIVER'],
    fixes: {
      full: 'Check that Docker answers. Free space on that disk (docker system df shows what uses it), or enlarge it.',
    },
  },
  docker_bridge: {
    checks: 'Docker answers, and its default bridge has an address of this machine.',
    settings: ['CONTAINERS_DRIVER'],
    fixes: {
      silent:
        'Install and start Docker (systemctl start docker), and let this user reach it: the group docker.',
      none: 'Remove "bridge": "none" from Docker’s daemon.json (or start Docker), restart Docker, then the provisioner: it makes the proxy listen on the bridge.',
    },
  },
  nginx: {
    checks:
      'NGINX_BIN is an nginx that can be used; the configuration of the system’s nginx includes the sites.',
    settings: ['NGINX_BIN', 'NGINX_SYSTEM_CONFIG'],
    fixes: {
      missing: 'Install nginx 1.19.5 or newer (apt-get install nginx), or set NGINX_BIN to its path.',
      include: 'Add the named line to the http block of NGINX_SYSTEM_CONFIG, then reload nginx.',
    },
  },
  proxy: {
    checks: 'The proxy reacts to a request.',
    settings: ['PROXY_LISTEN', 'PROXY_HTTP_PORT'],
    fixes: { silent: 'Check the proxy’s process and its log; restart the provisioner if it hangs.' },
  },
  host_address: {
    checks: 'HOST_ADDRESS leads to this machine.',
    settings: ['HOST_ADDRESS'],
    fixes: {
      foreign:
        'Set HOST_ADDRESS to the public address of this machine. Behind NAT or a load balancer, lead its ports PROXY_HTTP_PORT and PROXY_TLS_PORT here, also for this machine itself.',
    },
  },
  reconciler: {
    checks: 'Passes observe and plan.',
    settings: [],
    fixes: {
      hangs: 'Run tagyard plan: it names the target that does not answer.',
      unplanned: 'Fix what the message names. The pass is repeated automatically.',
      first: 'Wait for the first full pass, then check the other parts.',
    },
  },
  secrets: {
    checks: 'The secrets of all manifests are bound to their site; the next change by the API binds them.',
    settings: [],
    fixes: {},
  },
  sites_repo: {
    checks: 'The sites repository can be read.',
    settings: ['SITES_REPO', 'SITES_REPO_GIT_CONFIG'],
    fixes: { unread: 'Check SITES_REPO, and that git can reach it.' },
  },
  sites_repo_rights: {
    checks: 'The sites repository has SITES_BRANCH or is empty, and accepts pushes of this daemon.',
    settings: ['SITES_REPO', 'SITES_BRANCH', 'SITES_REPO_GIT_CONFIG'],
    fixes: {
      refused:
        'Let the user or key of SITES_REPO read and push to the repository. Over SSH the key and known_hosts are those of the service’s user; or set SITES_REPO_GIT_CONFIG.',
      branch: 'Set SITES_BRANCH to a branch of the repository, or restore the branch.',
    },
  },
  cloudflare_zone: {
    checks: 'Cloudflare knows the zone and has activated it, and EDGE_DOMAIN is in it.',
    settings: ['CLOUDFLARE_ZONE_ID', 'CLOUDFLARE_API_TOKEN', 'CLOUDFLARE_API_URL', 'EDGE_DOMAIN'],
    fixes: {
      silent:
        'Check that this machine reaches CLOUDFLARE_API_URL, and that cloudflarestatus.com reports no outage.',
      token:
        'Make a new token with the permissions of docs/deploy-edge.md, for the zone and its account, and set CLOUDFLARE_API_TOKEN.',
      unknown: 'Set CLOUDFLARE_ZONE_ID to the zone’s id, as its overview in Cloudflare’s dashboard shows it.',
      inactive: 'Set the name servers that Cloudflare names for the zone at the domain’s registrar.',
      other:
        'Set EDGE_DOMAIN to the zone’s name or a name under it, or CLOUDFLARE_ZONE_ID to the zone of EDGE_DOMAIN.',
    },
  },
  cloudflare_token: {
    checks: 'The token may edit DNS (with DNS_PROVIDER=cloudflare), Workers routes and KV.',
    settings: ['CLOUDFLARE_API_TOKEN', 'CLOUDFLARE_ACCOUNT_ID'],
    fixes: {
      lacks:
        'Add the named permissions to the token in Cloudflare’s dashboard, for the zone and for the account CLOUDFLARE_ACCOUNT_ID.',
    },
  },
  edge_kv: {
    checks: 'The account has the KV namespaces of the worker.',
    settings: ['CLOUDFLARE_ACCOUNT_ID', 'EDGE_SCRIPT_NAME'],
    fixes: {
      missing:
        'Create the named namespaces (npx wrangler kv namespace create), put their ids into wrangler.jsonc and deploy the worker (docs/deploy-edge.md).',
    },
  },
  worker_logs: {
    checks: 'Cloudflare logs no request of the worker.',
    settings: ['EDGE_SCRIPT_NAME'],
    fixes: {
      wrong:
        'Switch these off in the dashboard, or run npx wrangler deploy with the repository’s wrangler.jsonc.',
      absent: 'Run npx wrangler deploy, or set EDGE_SCRIPT_NAME to the name of the worker.',
      silent:
        'Check that this host reaches api.cloudflare.com, and that cloudflarestatus.com reports no outage; then run tagyard doctor again.',
    },
  },
  worker_bindings: {
    checks: 'The deployed worker has the stores and the secret that it reads.',
    settings: ['EDGE_SCRIPT_NAME'],
    fixes: {
      wrong:
        'Run npx wrangler deploy with the ids of wrangler.jsonc, and npx wrangler secret put HOP_SECRET.',
      absent: 'Run npx wrangler deploy, or set EDGE_SCRIPT_NAME to the name of the worker.',
      silent:
        'Check that this host reaches api.cloudflare.com, and that cloudflarestatus.com reports no outage; then run tagyard doctor again.',
    },
  },
  quotas: {
    checks: 'Another site fits into the zone’s limits of DNS records and Workers routes.',
    settings: ['DNS_RECORD_QUOTA', 'WORKER_ROUTE_QUOTA', 'DNS_RECORD_MODE', 'EDGE_ROUTE_MODE'],
    fixes: {
      near: 'Do what the finding says: use a wildcard for the host’s names, delete what is unused, or ask Cloudflare to raise the limit.',
    },
  },
  edge: {
    checks: 'The worker answers at a site’s edge hostname.',
    settings: ['EDGE_PUBLIC_URL', 'EDGE_DOMAIN'],
    fixes: {
      stranger:
        'A new name is known to the whole edge only after some seconds: run the check again first. Then check that the worker is deployed and routed, and where the name leads: tagyard doctor <site>.',
    },
  },
  edge_names: {
    checks:
      'A certificate covers each edge hostname; Cloudflare’s universal one covers one label under the zone.',
    settings: ['EDGE_DOMAIN'],
    fixes: {
      bare: 'Give the sites hostnames directly under the zone (EDGE_DOMAIN), or order an advanced certificate for these names.',
      silent: 'Check that Cloudflare’s API answers.',
    },
  },
  edge_routes: {
    checks: 'Nothing at Cloudflare takes requests of the sites’ hostnames before the worker.',
    settings: ['CLOUDFLARE_API_TOKEN'],
    fixes: {
      silent:
        'Check that Cloudflare’s API answers, and that CLOUDFLARE_API_TOKEN may read the zone’s Workers routes.',
      route:
        'Delete the named route in Cloudflare’s dashboard (the zone, Workers Routes), or let its pattern not match edge hostnames.',
      domain:
        'Delete the named custom domain in Cloudflare’s dashboard (Workers & Pages, the named worker, Settings, Domains & Routes), then run tagyard apply: the hostname gets its DNS record again.',
      gateway:
        'Switch it off in Cloudflare’s dashboard (the zone, Google tag gateway), or use another zone for EDGE_DOMAIN.',
    },
  },
  edge_upstream: {
    checks: 'The edge answers at EDGE_UPSTREAM, where the proxy leads custom domains.',
    settings: ['EDGE_UPSTREAM'],
    fixes: {
      silent:
        'Set EDGE_UPSTREAM to an address at which the edge answers: for Cloudflare, one of the addresses of an edge hostname.',
    },
  },
  hop_secret: {
    checks: 'The edge has the same HOP_SECRET as this host. It is compared by a signature, and never sent.',
    settings: ['HOP_SECRET'],
    fixes: {
      other:
        'Set the same HOP_SECRET at both ends (npx wrangler secret put HOP_SECRET), and deploy the worker of this release.',
    },
  },
  dns_server: {
    checks: 'DNS_SERVER answers and lets the TSIG key update the zone.',
    settings: ['DNS_SERVER', 'DNS_ZONE', 'DNS_TSIG_NAME', 'DNS_TSIG_SECRET_FILE'],
    fixes: {
      refused:
        'Check DNS_SERVER, DNS_ZONE, DNS_TSIG_NAME, DNS_TSIG_ALGORITHM and DNS_TSIG_SECRET_FILE, and that the server runs and lets that key transfer and update the zone.',
    },
  },
  dns_zones: {
    checks: 'The resolvers know the zones of this installation’s names.',
    settings: ['DNS_RESOLVERS', 'EDGE_DOMAIN', 'ORIGIN_DOMAIN'],
    fixes: {
      unknown:
        'Delegate the named zone at its parent or registrar (NS records), or set EDGE_DOMAIN and ORIGIN_DOMAIN to zones of yours.',
      silent: 'Set DNS_RESOLVERS to resolvers that answer this machine, or unset it to use the system’s.',
    },
  },
  acme: {
    checks: 'The certificate authority’s directory answers.',
    settings: ['ACME_DIRECTORY_URL', 'ACME_CA_FILE'],
    fixes: {
      silent:
        'Set ACME_DIRECTORY_URL to the authority’s directory, and let this machine reach it. An authority of your own also needs ACME_CA_FILE.',
    },
  },
  preview: {
    checks: 'The tag servers of a site reach its preview server.',
    settings: [],
    fixes: {
      unreached:
        'Do what the finding says: it depends on the step that fails. tagyard doctor <site> asks one site.',
    },
  },
  cluster: {
    checks: 'The cluster’s API server answers.',
    settings: ['KUBECONFIG', 'KUBERNETES_CONTEXT'],
    fixes: {
      silent: 'Make the API server reachable with the account of KUBECONFIG, or of the pod that runs this.',
    },
  },
  gateway: {
    checks: 'A tag server answers at a site’s origin through the cluster’s gateways, which have HOP_SECRET.',
    settings: ['HOP_SECRET', 'KUBERNETES_GATEWAY_ADDRESS'],
    fixes: {
      unreached:
        'Check the DNS of the named origin, the front, the gateways’ pods, and that the front passes TLS and x-tagyard-* headers on (docs/gateway.md).',
    },
  },
  network_policies: {
    checks: 'The cluster enforces NetworkPolicies.',
    settings: [],
    fixes: {
      open: 'Enable the enforcement of NetworkPolicies in the cluster, or install a network plugin that enforces them (docs/kubernetes.md).',
    },
  },
  database: {
    checks: 'PostgreSQL answers, and the roles have the rights that they need and no others.',
    settings: ['DATABASE_URL', 'PORT_POOL_DATABASE_URL'],
    fixes: {
      silent: 'Check that PostgreSQL runs, and the host, user, password and database of the named setting.',
      api: 'Let DATABASE_URL name a role that owns nothing and inherits nothing: no superuser, no right to create in the schema public.',
      owner: 'Let PORT_POOL_DATABASE_URL name the role that owns the database: it creates the schema.',
      apart: 'Let DATABASE_URL and PORT_POOL_DATABASE_URL name the same database.',
    },
  },
  provisioner: {
    checks: 'The provisioner answers and takes INFRA_SECRET, and has the identity of AGE_RECIPIENT.',
    settings: ['INFRA_PROVISIONER_URL', 'INFRA_SECRET', 'HOST_NAME', 'AGE_RECIPIENT'],
    fixes: {
      silent: 'Start the provisioner, and set INFRA_PROVISIONER_URL to its URL.',
      stranger: 'Set INFRA_PROVISIONER_URL to the provisioner’s URL: another server answers there.',
      unset: 'Set INFRA_SECRET in the provisioner’s environment, too, and restart it.',
      secret:
        'Set the same INFRA_SECRET in the environments of management and of the provisioner, and restart both.',
      recipient: 'Set AGE_RECIPIENT to the recipient of the host’s AGE_IDENTITY_FILE (age-keygen -y).',
      host: 'Set the same HOST_NAME in the environments of management and of the provisioner.',
    },
  },
  verification: {
    checks: 'The verification worker answers and takes VERIFICATION_SECRET.',
    settings: ['VERIFICATION_WORKER_URL', 'VERIFICATION_SECRET'],
    fixes: {
      silent:
        'Deploy the verification worker (docs/deploy-edge.md), and set VERIFICATION_WORKER_URL to its URL.',
      secret:
        'Set VERIFICATION_SECRET to the secret of that worker (npx wrangler secret put VERIFICATION_SECRET).',
    },
  },
} as const satisfies Readonly<Record<string, Runbook>>;

export type PartName = keyof typeof RUNBOOKS;
