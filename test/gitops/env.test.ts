import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { readEnv } from '../../gitops/env.ts';

const REQUIRED = {
  SITES_REPO: '/sites.git',
  STATE_DIR: '/state',
  HOP_SECRET: 'a-hop-secret-of-a-test',
  AGE_IDENTITY_FILE: '/identity',
  CLOUDFLARE_API_TOKEN: 'token',
  CLOUDFLARE_ACCOUNT_ID: 'account',
  CLOUDFLARE_ZONE_ID: 'zone',
  EDGE_DOMAIN: 'example.net',
  HOST_ADDRESS: '198.51.100.4',
  EDGE_UPSTREAM: 'http://127.0.0.1:8787',
};

describe('the environment', () => {
  test('has the settings of the host and of all appliers', () => {
    expect(readEnv({ ...REQUIRED, TRUSTED_PROXIES: '10.0.0.0/8, 2001:db8::/32', TLS_DIR: '' })).toMatchObject(
      {
        PROVISIONER_PORT: 8081,
        CONTAINERS_DRIVER: 'docker',
        PROXY_LISTEN: ['0.0.0.0'],
        TRUSTED_PROXIES: ['10.0.0.0/8', '2001:db8::/32'],
        TLS_DIR: undefined,
        EDGE_ROUTE_MODE: 'auto',
        DNS_PROVIDER: 'cloudflare',
        DRIFT_MODES: {},
      },
    );
  });

  test('has the settings and the target of an applier that is added to the list', () => {
    const notes = { target: 'notes', settings: z.object({ NOTES_DIR: z.string() }) };
    const source = { ...REQUIRED, NOTES_DIR: '/notes', DRIFT_MODES: 'notes=warn' };
    expect(readEnv(source, [notes])).toMatchObject({ NOTES_DIR: '/notes', DRIFT_MODES: { notes: 'warn' } });
    expect(() => readEnv(REQUIRED, [notes])).toThrow('NOTES_DIR');
    expect(() => readEnv({ ...source, DRIFT_MODES: 'dns=warn' }, [notes])).toThrow(
      'DRIFT_MODES: dns is none of the targets notes',
    );
  });

  test('names all wrong variables in one line', () => {
    const { SITES_REPO: _, ...incomplete } = REQUIRED;
    expect(() => readEnv({ ...incomplete, HOST_ADDRESS: 'tag-1', RECYCLE_DAYS: '12' })).toThrow(
      /^the environment is incomplete: SITES_REPO: .*; HOST_ADDRESS: .*; RECYCLE_DAYS: [^\n]*$/,
    );
  });

  test.each([
    ['dns=warn,kv=ignore', { dns: 'warn', kv: 'ignore' }],
    ['', {}],
  ])('reads DRIFT_MODES=%s', (text, modes) => {
    expect(readEnv({ ...REQUIRED, DRIFT_MODES: text }).DRIFT_MODES).toEqual(modes);
  });

  test.each([
    ['tape=warn', 'tape is none of the targets network, policy, containers, proxy, kv, route, dns'],
    ['dns=maybe', 'dns=maybe must be <target>=<mode>, with one of the modes enforce, warn, ignore'],
    ['dns', 'dns must be <target>=<mode>'],
    ['dns=warn=ignore', 'dns=warn=ignore must be <target>=<mode>'],
  ])('refuses DRIFT_MODES=%s', (text, message) => {
    expect(() => readEnv({ ...REQUIRED, DRIFT_MODES: text })).toThrow(`DRIFT_MODES: ${message}`);
  });
});
