import { expect, test } from 'vitest';
import { readEnvironment } from '../../management/env.ts';

const image = (name: string) => `${name}@sha256:${'a'.repeat(64)}`;
const required = {
  SITES_REPO: '/srv/sites.git',
  INFRA_PROVISIONER_URL: 'http://127.0.0.1:8081',
  INFRA_SECRET: 'infra-s3cret',
  AUTH_JWKS_URL: 'https://login.example.test/jwks.json',
  AUTH_ISSUER: 'https://login.example.test/',
  AUTH_AUDIENCE: 'tagyard',
  AGE_RECIPIENT: 'age1abc',
  EDGE_DOMAIN: 'edge.example.net',
  ORIGIN_DOMAIN: 'origin.example.net',
  TAG_SERVER_IMAGE: image('registry.example:5000/gtm:stable'),
};

test('the defaults trust no proxy, allow the repository of the image, and listen on loopback', () => {
  expect(readEnvironment(required)).toMatchObject({
    MANAGEMENT_ADDRESS: '127.0.0.1',
    MANAGEMENT_TRUSTED_PROXIES: [],
    DEFAULT_CONSENT: 'opt_out',
    PLATFORM_DOMAINS: [],
    DOMAIN_PROOF: 'dns',
    PROOF_RESOLVERS: ['1.1.1.1', '8.8.8.8', '9.9.9.9'],
    IMAGE_REPOSITORIES: ['registry.example:5000/gtm'],
    CUSTOM_PUBLIC_URL: 'https://{host}',
    KEEP_AUDIT_DAYS: 730,
    KEEP_EVENTS_DAYS: 180,
    KEEP_OPERATIONS_DAYS: 180,
  });
});

test.each<[string, string, unknown]>([
  [
    'MANAGEMENT_TRUSTED_PROXIES',
    'loopback, 10.0.0.0/8, 2001:db8::1',
    ['loopback', '10.0.0.0/8', '2001:db8::1'],
  ],
  ['PLATFORM_DOMAINS', 'tagyard.example', ['tagyard.example']],
  ['IMAGE_REPOSITORIES', 'gcr.io/gtm,local', ['gcr.io/gtm', 'local']],
  ['DEFAULT_CONSENT', 'required', 'required'],
  ['DEFAULT_TLS', 'acme', 'acme'],
  ['AUTH_SUBJECT_CLAIM', 'oid', 'oid'],
  ['KEEP_EVENTS_DAYS', '0', 0],
  ['METRICS_TOKEN', 'metrics-token-of-tests', 'metrics-token-of-tests'],
  ['FORWARDER_KEY', 'k'.repeat(32), 'k'.repeat(32)],
])('%s can be %s', (name, value, expected) => {
  expect(readEnvironment({ ...required, [name]: value })).toMatchObject({ [name]: expected });
});

test.each([
  ['MANAGEMENT_TRUSTED_PROXIES', 'everyone'],
  ['PLATFORM_DOMAINS', 'https://tagyard.example'],
  ['KEEP_AUDIT_DAYS', '7'],
  ['METRICS_TOKEN', 'short'],
  ['FORWARDER_KEY', 'k'.repeat(31)],
  ['DEFAULT_CONSENT', 'basic'],
  ['DEFAULT_TLS', 'inside'],
  ['AUTH_SUBJECT_CLAIM', 'email'],
  ['AUTH_SUBJECT_CLAIM', 'two words'],
])('%s can’t be %s', (name, value) => {
  expect(() => readEnvironment({ ...required, [name]: value })).toThrow(name);
});

const login = { ...required, OIDC_CLIENT_ID: 'tagyard', PUBLIC_URL: 'https://api.example.net/' };

test('a login needs the provider and the API’s own URL', () => {
  expect(readEnvironment(login)).toMatchObject({
    PUBLIC_URL: 'https://api.example.net',
    SESSION_IDLE_MINUTES: 480,
    SESSION_HOURS: 24,
  });
  expect(readEnvironment({ ...login, PUBLIC_URL: 'http://127.0.0.1:8080' }).PUBLIC_URL).toBe(
    'http://127.0.0.1:8080',
  );
});

test.each([
  [{ PUBLIC_URL: '' }, /wrong: PUBLIC_URL: set it beside OIDC_CLIENT_ID/],
  [{ PUBLIC_URL: 'http://api.example.net' }, /wrong: PUBLIC_URL: must be https/],
  [{ AUTH_ISSUER: 'urn:issuer' }, /wrong: AUTH_ISSUER: /],
  [{ AUTH_ISSUER: 'http://login.example.net' }, /wrong: AUTH_ISSUER: must be https/],
  [
    { OIDC_ISSUER: 'https://other.example.test/' },
    /wrong: OIDC_ISSUER: no longer exists; .*: set AUTH_ISSUER/,
  ],
  [{ DASHBOARD_ORIGINS: 'https://dashboard.example.net/' }, /wrong: DASHBOARD_ORIGINS\.0: must be an origin/],
  [{ DASHBOARD_ORIGINS: '*' }, /wrong: DASHBOARD_ORIGINS\.0: must be an origin/],
])('a login with %o is refused', (settings, message) => {
  expect(() => readEnvironment({ ...login, ...settings })).toThrow(message);
});

test.each([
  'TRAFFIC_SOURCE',
  'ANALYTICS_ENGINE_API_URL',
  'ANALYTICS_ENGINE_API_TOKEN',
  'ANALYTICS_ENGINE_ACCOUNT_ID',
  'ANALYTICS_ENGINE_DATASET',
])('%s of an earlier release is refused with what replaces it, unless it is empty', (name) => {
  expect(() => readEnvironment({ ...required, [name]: 'collector' })).toThrow(
    `${name}: no longer exists; traffic is summed up from the raw logs alone: set RAW_LOGS_S3_URL or RAW_LOGS_API_URL`,
  );
  expect(readEnvironment({ ...required, [name]: '' })).not.toHaveProperty(name);
});

test('every setting that is missing is named at once, with what it is for', () => {
  expect(() => readEnvironment({ ...required, SITES_REPO: '', INFRA_SECRET: undefined })).toThrow(
    'the environment is wrong:\n' +
      '  SITES_REPO: isn’t set. The sites repo: a git URL, or the path of a bare repo.\n' +
      "  INFRA_SECRET: isn’t set. The provisioner's INFRA_SECRET, which management sends to it.",
  );
  for (const settings of [
    {},
    { ...login, PUBLIC_URL: '', SMTP_URL: 'smtp://mail', RAW_LOGS_S3_URL: 'https://s3' },
  ])
    expect(() => readEnvironment(settings)).toThrow(
      /^the environment is wrong:(?:\n {2}[A-Z0-9_]+: (?!.*(expected|received)).*){4,}$/,
    );
});
