/** One thing that a person decides. Its name is the setting's, so that the reference of settings explains it further. */
export interface Question {
  readonly name: string;
  readonly text: string;
  /** Unset: the question must be answered; empty: it may stay unanswered. */
  readonly usual?: string;
  readonly isSecret?: true;
}

export const QUESTIONS = [
  { name: 'EDGE_DOMAIN', text: 'The domain of new sites (a Cloudflare zone), for example example.net' },
  { name: 'HOST_ADDRESS', text: 'The public IPv4 address of this host' },
  { name: 'HOST_NAME', text: 'A name for this host', usual: 'tag-1' },
  {
    name: 'SITES_REPO',
    text: 'The sites repository, for example git@git.example.net:tagyard/sites.git',
  },
  {
    name: 'CLOUDFLARE_API_TOKEN',
    text: 'A Cloudflare token that may edit DNS, Workers routes and scripts, KV, R2 and queues, and read the zone',
    isSecret: true,
  },
  { name: 'CLOUDFLARE_ACCOUNT_ID', text: 'The id of the Cloudflare account' },
  { name: 'CLOUDFLARE_ZONE_ID', text: 'The id of the zone' },
  {
    name: 'EDGE_UPSTREAM',
    text: 'An address of Cloudflare’s edge, to which custom domains are forwarded, for example https://203.0.113.10',
  },
  { name: 'ACME_EMAIL', text: 'Your address for the certificate authority, whose terms you accept by it' },
  {
    name: 'DATABASE',
    text: 'PostgreSQL’s host, port and database',
    usual: 'localhost:5432/tagyard',
  },
  {
    name: 'DATABASE_ADMIN_URL',
    text: 'A URL of PostgreSQL that may create roles (empty: you run database.sql yourself)',
    usual: '',
    isSecret: true,
  },
  {
    name: 'AUTH_ISSUER',
    text: 'The issuer of the tokens that the API accepts, a URL of your login provider',
  },
  { name: 'AUTH_JWKS_URL', text: 'The URL of the issuer’s signing keys (JWKS)' },
  { name: 'SUPER_ADMINS', text: 'The subjects of operators, separated by commas', usual: '' },
  {
    name: 'PUBLIC_URL',
    text: 'The URL at which browsers reach the API (empty: no logins of people)',
    usual: '',
  },
] as const satisfies readonly Question[];

export type Answered = Readonly<Record<(typeof QUESTIONS)[number]['name'], string>>;
