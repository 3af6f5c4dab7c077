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
    const settings = readEnv({ ...REQUIRED, TRUSTED_PROXIES: '10.0.0.0/8, 2001:db8::/32', TLS_DIR: '' });
    expect(settings).not.toHaveProperty('TLS_DIR');
    expect(settings).toMatchObject({
      PROVISIONER_PORT: 8081,
      CONTAINERS_DRIVER: 'docker',
      PROXY_LISTEN: ['0.0.0.0'],
      TRUSTED_PROXIES: ['10.0.0.0/8', '2001:db8::/32'],
      EDGE_ROUTE_MODE: 'auto',
      DNS_PROVIDER: 'cloudflare',
      DRIFT_MODES: {},
    });
  });

  test('has the settings and the target of an applier that is added to the list', () => {
    const notes = { target: 'notes', settings: z.object({ NOTES_DIR: z.string() }) };
    const source = { ...REQUIRED, NOTES_DIR: '/notes', DRIFT_MODES: 'notes=warn' };
    expect(readEnv(source, [notes])).toMatchObject({ NOTES_DIR: '/notes', DRIFT_MODES: { notes: 'warn' } });
    expect(() => readEnv(REQUIRED, [notes])).toThrow('NOTES_DIR');
    expect(() => readEnv({ ...source, DRIFT_MODES: 'dns=warn' }, [notes])).toThrow(
      'DRIFT_MODES: dns is not one of the targets notes',
    );
  });

  test('names each setting that is missing or wrong, with what it is for', () => {
    const { SITES_REPO: _, ...incomplete } = REQUIRED;
    const source = { ...incomplete, CLOUDFLARE_ZONE_ID: '', HOST_ADDRESS: 'tag-1', RECYCLE_DAYS: '12' };
    expect(() => readEnv({ ...source, TRAFFIC_SOURCE: 'collector', PROVISIONER_PORT: 'x' })).toThrow(
      new RegExp(
        [
          '^the environment is wrong:',
          '  TRAFFIC_SOURCE: no longer exists; .*',
          '  SITES_REPO: isn’t set. The sites repo: a git URL, or the path of a bare repo.',
          '  PROVISIONER_PORT: must be a number.*',
          '  CLOUDFLARE_ZONE_ID: isn’t set. The zone of EDGE_DOMAIN.',
          '  HOST_ADDRESS: must be an IPv4 address. The address in the DNS records of origin and preview hostnames.',
          '  RECYCLE_DAYS: must be at most 11. .*',
        ].join('\n'),
      ),
    );
    expect(() => readEnv({})).not.toThrow(/expected|received|Invalid/);
  });

  test.each([
    ['dns=warn,kv=ignore', { dns: 'warn', kv: 'ignore' }],
    ['', {}],
  ])('reads DRIFT_MODES=%s', (text, modes) => {
    expect(readEnv({ ...REQUIRED, DRIFT_MODES: text }).DRIFT_MODES).toEqual(modes);
  });

  test.each([
    ['tape=warn', 'tape is not one of the targets network, policy, containers, proxy, kv, route, dns'],
    ['dns=maybe', 'dns=maybe must be <target>=<mode>, with one of the modes enforce, warn, ignore'],
    ['dns', 'dns must be <target>=<mode>'],
    ['dns=warn=ignore', 'dns=warn=ignore must be <target>=<mode>'],
  ])('refuses DRIFT_MODES=%s', (text, message) => {
    expect(() => readEnv({ ...REQUIRED, DRIFT_MODES: text })).toThrow(`DRIFT_MODES: ${message}`);
  });

  describe('of a cluster', () => {
    const CLUSTER = { ...REQUIRED, HOST_KIND: 'kubernetes' };

    test.each([
      ['TAGYARD_INSTANCE', '-a'],
      ['TAGYARD_INSTANCE', 'a-'],
      ['HOST_NAME', '-cluster'],
      ['HOST_NAME', 'cluster-'],
      ['HOST_NAME', 'one cluster'],
      ['HOST_NAME', 'c'.repeat(64)],
    ])(
      'refuses %s=%s, which can’t be the value of a label; a machine’s environment accepts it',
      (name, value) => {
        expect(() => readEnv({ ...CLUSTER, [name]: value })).toThrow(
          `${name}: must begin and end with a letter or digit`,
        );
        expect(readEnv({ ...REQUIRED, [name]: value })).toMatchObject({ [name]: value });
      },
    );

    test.each([
      '10.0.0.0/8',
      '192.0.2.7/32',
      '0.0.0.0/0',
      '2001:db8::/32',
      '::/0',
      '::1/128',
      '64:ff9b::192.0.2.0/120',
    ])('admits %s', (range) => {
      expect(readEnv({ ...CLUSTER, KUBERNETES_ADMIT_CIDRS: range })).toMatchObject({
        KUBERNETES_ADMIT_CIDRS: [range],
      });
    });

    test.each([
      ['10.1.0.0/8', 'must begin at the first address of its range'],
      ['192.0.2.1/24', 'must begin at the first address of its range'],
      ['2001:db8::1/64', 'must begin at the first address of its range'],
      ['64:ff9b::192.0.2.1/120', 'must begin at the first address of its range'],
      ['192.0.2.0/33', 'must be an address range'],
      ['fe80::%eth0/64', 'must be an address range'],
    ])('refuses to admit %s', (range, message) => {
      expect(() => readEnv({ ...CLUSTER, KUBERNETES_ADMIT_CIDRS: range })).toThrow(
        `KUBERNETES_ADMIT_CIDRS.0: ${message}`,
      );
    });
  });
});
