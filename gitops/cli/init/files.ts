import type { Answers } from './answers.ts';

/** What `tagyard init` makes once. */
export interface Secrets {
  readonly infra: string;
  readonly hop: string;
  readonly ingest: string;
  readonly forwarder: string;
  /** Passwords of the API's role and of the schema's owner. */
  readonly database: string;
  readonly owner: string;
  readonly recipient: string;
  readonly recoveryRecipient: string;
}

/** A setting, its value, and what it is for; an empty value leaves it out. */
type Line = readonly [name: string, value: string, purpose: string];

export function provisionerEnv({ given, provisioner }: Answers, secrets: Secrets, root: string): string {
  return envFile('the provisioner', provisioner, [
    ['TAGYARD_INSTANCE', 'production', 'the installation’s name in ownership marks'],
    ['HOST_NAME', given.HOST_NAME, 'this host, as manifests name it'],
    ['HOST_ADDRESS', given.HOST_ADDRESS, 'the address in the DNS records of sites'],
    ['EDGE_DOMAIN', given.EDGE_DOMAIN, 'the zone of sites’ names'],
    ['SITES_REPO', given.SITES_REPO, 'the desired state'],
    ['SITES_REPO_GIT_CONFIG', gitConfigOf(given, root, '/var/lib/tagyard'), 'names the key of this daemon'],
    ['STATE_DIR', `${root}/var/lib/tagyard`, 'the daemon’s own folder'],
    ['INFRA_SECRET', secrets.infra, 'what management sends; the same there'],
    ['HOP_SECRET', secrets.hop, 'what proxy and edge have in common'],
    ['AGE_IDENTITY_FILE', `${root}/etc/tagyard/age-identity`, 'decrypts the secrets of manifests'],
    ['CLOUDFLARE_API_TOKEN', given.CLOUDFLARE_API_TOKEN, 'edits zone and KV'],
    ['CLOUDFLARE_ACCOUNT_ID', given.CLOUDFLARE_ACCOUNT_ID, 'the account of zone and worker'],
    ['CLOUDFLARE_ZONE_ID', given.CLOUDFLARE_ZONE_ID, 'the zone of EDGE_DOMAIN'],
    ['EDGE_UPSTREAM', given.EDGE_UPSTREAM, 'where the proxy forwards custom domains'],
    ['PROXY_DRIVER', 'nginx', 'the proxy of this host'],
    ['ACME_DIRECTORY_URL', 'https://acme-v02.api.letsencrypt.org/directory', 'the authority of certificates'],
    ['ACME_EMAIL', given.ACME_EMAIL, 'your address for it'],
  ]);
}

export function managementEnv(
  { given, management }: Answers,
  secrets: Secrets,
  { root, image }: { readonly root: string; readonly image: string },
): string {
  const database = (role: string, password: string) => `postgres://${role}:${password}@${given.DATABASE}`;
  return envFile('management', management, [
    ['DATABASE_URL', database('tagyard', secrets.database), 'the database, as the API’s role'],
    ['PORT_POOL_DATABASE_URL', database('tagyard_owner', secrets.owner), 'the same, as the schema’s owner'],
    ['STATE_DIR', `${root}/var/lib/tagyard-management`, 'the daemon’s own folder'],
    ['SITES_REPO', given.SITES_REPO, 'the desired state'],
    [
      'SITES_REPO_GIT_CONFIG',
      gitConfigOf(given, root, '/var/lib/tagyard-management'),
      'names the key of this daemon',
    ],
    ['INFRA_PROVISIONER_URL', 'http://127.0.0.1:8081', 'the provisioner'],
    ['INFRA_SECRET', secrets.infra, 'the provisioner’s secret'],
    ['AGE_RECIPIENT', secrets.recipient, 'encrypts the secrets of manifests'],
    ['BACKUP_RECIPIENT', secrets.recoveryRecipient, 'encrypts backups; its identity is kept elsewhere'],
    ['FORWARDER_KEY', secrets.forwarder, 'the key of same-origin paths; keep it'],
    ['INGEST_SECRET', secrets.ingest, 'what the edge sends with its records'],
    ['AUTH_ISSUER', given.AUTH_ISSUER, 'who issues tokens'],
    ['AUTH_JWKS_URL', given.AUTH_JWKS_URL, 'the keys that sign them'],
    ['AUTH_AUDIENCE', 'tagyard', 'for whom they are'],
    ['SUPER_ADMINS', given.SUPER_ADMINS, 'operators'],
    ['PUBLIC_URL', given.PUBLIC_URL, 'the API for browsers; logins also need OIDC_CLIENT_ID'],
    ['EDGE_DOMAIN', given.EDGE_DOMAIN, 'the zone of sites’ names'],
    ['ORIGIN_DOMAIN', given.EDGE_DOMAIN, 'the zone of origin and preview names'],
    ['HOST_NAME', given.HOST_NAME, 'the host of new sites'],
    ['DEFAULT_CONSENT', 'required', 'of new sites (docs/consent.md)'],
    ['TAG_SERVER_IMAGE', image, 'of new sites'],
  ]);
}

/** The server of a sites repository over SSH, as `ssh-keyscan` takes it; `null`: another kind of address. */
export function sshServerOf(repo: string): { readonly host: string; readonly port: string } | null {
  const [, host, port = '22'] =
    /^ssh:\/\/(?:[^@/]*@)?([^:/]+)(?::(\d+))?/.exec(repo) ??
    /^(?:[^@/:]+@)?([^:/]+):(?!\/\/)/.exec(repo) ??
    [];
  return host === undefined ? null : { host, port };
}

/** Below another root, no keys are made. */
function gitConfigOf({ SITES_REPO: repo }: Answers['given'], root: string, home: string): string {
  return root !== '' || sshServerOf(repo) === null ? '' : `${home}/.ssh/git-config`;
}

/** Values are quoted, because systemd and Node's parser read `#` and spaces differently outside of quotes. */
function envFile(part: string, further: Readonly<Record<string, string>>, lines: readonly Line[]): string {
  const own = lines.map(([name, value, purpose]): Line => [name, further[name] ?? value, purpose]);
  const names = new Set<string>(lines.map(([name]) => name));
  const others = Object.entries(further).filter(([name]) => !names.has(name));
  const text = [...own, ...others.map(([name, value]): Line => [name, value, ''])]
    .filter(([, value]) => value !== '')
    .map(([name, value, purpose]) => `${purpose && `# ${purpose}\n`}${name}='${value}'\n`);
  return `# Settings of ${part}, written by \`tagyard init\`. docs/reference/settings.md explains each.\n${text.join('')}`;
}

/** For psql: `\gexec` runs what the query returns, so that roles and database that exist already stay as they are. */
export function rolesSql({ given }: Answers, { database, owner }: Secrets): string {
  const name = given.DATABASE.split('/').at(-1);
  const role = (one: string, password: string) =>
    `select 'create role ${one} login' where not exists (select from pg_roles where rolname = '${one}') \\gexec\nalter role ${one} password '${password}';\n`;
  return `-- The roles of management: one owns the schema, the other one is the API's.
${role('tagyard_owner', owner)}${role('tagyard', database)}select 'create database ${name} owner tagyard_owner' where not exists (select from pg_database where datname = '${name}') \\gexec
`;
}
