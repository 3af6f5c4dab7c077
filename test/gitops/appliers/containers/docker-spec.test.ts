import { describe, expect, test } from 'vitest';
import { insidePreviewName } from '../../../../base/ownership.ts';
import { desiredContainers } from '../../../../gitops/appliers/containers/desired.ts';
import { createOptions, readSlot } from '../../../../gitops/appliers/containers/docker-spec.ts';
import { Secret } from '../../../../sites/manifest/secrets.ts';
import { Slots } from '../../../../sites/manifest/slots.ts';
import { loadedManifest } from '../../../support/manifest.ts';
import { FACTS } from '../../../support/service-account.ts';

const launches = desiredContainers(loadedManifest(), { slots: new Slots('127.77'), originPort: 8443 }).map(
  ({ spec }) => ({ name: `tagyard-t-${spec.role}`, mark: 'tgy1 t tag-1 acme-shop 0123abcd', spec }),
);
const [processing, preview] = launches.map((launch) => createOptions(launch, { caFile: '/var/ca.pem' }));

describe('a container in Docker', () => {
  test('has the policy script’s URL, which is at the preview’s address, in the processing role only', () => {
    const policy = { text: 'x', hash: '0123456789abcdef' };
    const settings = {
      slots: new Slots('127.77'),
      originPort: 8443,
      policyScripts: { nameOf: (site: string) => `${site}-policy-01234`, tokenOf: () => 'token' },
    };
    const network = { name: 'n', previewAddress: '172.17.0.1' };
    const [first, second] = desiredContainers({ ...loadedManifest(), policy }, settings).map(({ spec }) =>
      createOptions({ name: 'x', mark: 'y', spec }, { network }),
    );
    expect(first?.Env).toContain(
      'POLICY_SCRIPT_URL=https://acme-shop-policy-01234:8443/token/0123456789abcdef.js',
    );
    expect(first?.HostConfig?.ExtraHosts).toEqual([
      'acme-shop-preview.example.net:172.17.0.1',
      'acme-shop-policy-01234:172.17.0.1',
    ]);
    expect(second?.HostConfig?.ExtraHosts).toEqual([]);
    expect(second?.Env?.join()).not.toContain('POLICY_SCRIPT_URL');
  });

  test('is read-only, has no privileges and capabilities, isn’t root, and has limits', () => {
    for (const options of [processing, preview]) {
      expect(options).toMatchObject({
        User: '65532:65532',
        HostConfig: {
          ReadonlyRootfs: true,
          CapDrop: ['ALL'],
          SecurityOpt: ['no-new-privileges'],
          RestartPolicy: { Name: 'unless-stopped' },
          LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } },
          PidsLimit: 128,
        },
      });
      expect(options?.HostConfig?.Privileged).toBeUndefined();
      expect(options?.HostConfig?.NetworkMode).toBeUndefined();
    }
  });

  test.each([
    [processing, 512 * 2 ** 20, 1e9],
    [preview, 256 * 2 ** 20, 0.5e9],
  ])('limits memory without swap, and processor time', (options, bytes, nanoCpus) => {
    expect(options?.HostConfig).toMatchObject({ Memory: bytes, MemorySwap: bytes, NanoCpus: nanoCpus });
  });

  test('publishes the one port on the spec’s loopback address only', () => {
    const { spec } = launches[0] ?? {};
    expect(processing?.HostConfig?.PortBindings).toEqual({
      '8080/tcp': [{ HostIp: spec?.address, HostPort: '20000' }],
    });
  });

  test('resolves the preview hostname for the processing role only', () => {
    expect(processing?.HostConfig?.ExtraHosts).toEqual(['acme-shop-preview.example.net:host-gateway']);
    expect(preview?.HostConfig?.ExtraHosts).toEqual([]);
    expect(processing?.Env).toContain('PREVIEW_SERVER_URL=https://acme-shop-preview.example.net:8443');
    expect(preview?.Env).toContain('RUN_AS_PREVIEW_SERVER=true');
  });

  test('is in its site’s network only, and resolves the preview hostname to the given address', () => {
    const network = { name: 'tagyard-t-acme-shop', previewAddress: '172.17.0.1' };
    const [own] = launches.map((launch) => createOptions(launch, { network }));
    expect(own?.HostConfig?.NetworkMode).toBe('tagyard-t-acme-shop');
    expect(own?.HostConfig?.ExtraHosts).toEqual(['acme-shop-preview.example.net:172.17.0.1']);
  });

  test('reaches the preview server by a name of one label, which Docker’s resolver asks no other server for', () => {
    const previewNameOf = (site: string) => insidePreviewName({ instance: 't', host: 'tag-1' }, site);
    const longest = 'a'.repeat(48);
    expect(previewNameOf(longest)).toMatch(/^a{48}-preview-[0-9a-f]{5}$/);
    const desired = { slots: new Slots('127.77'), originPort: 8443, previewNameOf };
    const [resource] = desiredContainers(loadedManifest(longest), desired);
    if (resource === undefined) throw new Error('a processing server is desired');
    const network = { name: 'n', previewAddress: '172.17.0.1' };
    const options = createOptions({ name: 'c', mark: 'm', spec: resource.spec }, { network });
    expect(options.Env).toContain(`PREVIEW_SERVER_URL=https://${previewNameOf(longest)}:8443`);
    expect(options.HostConfig).toMatchObject({
      ExtraHosts: [`${previewNameOf(longest)}:172.17.0.1`],
      DnsOptions: ['ndots:1'],
    });
    expect(previewNameOf(longest).length).toBeLessThan(64);
  });

  test('has its slot in a label, because a stopped container lists no ports', () => {
    const { spec } = launches[0] ?? {};
    const { address, boundAddress, port } = spec ?? {};
    expect(readSlot(processing?.Labels ?? {})).toEqual({ address, boundAddress, port });
    expect(readSlot({})).toBeNull();
    expect(readSlot({ 'tagyard.slot': '10.0.0.1 10.0.0.1 80' })).toBeNull();
  });

  test('mounts the CA read-only, and by Mounts, so that a missing file gets no folder in its place', () => {
    expect(processing?.HostConfig?.Binds).toBeUndefined();
    expect(processing?.HostConfig?.Mounts).toEqual([
      { Type: 'bind', Source: '/var/ca.pem', Target: '/etc/tagyard/ca.pem', ReadOnly: true },
    ]);
    expect(processing?.Env).toContain('NODE_EXTRA_CA_CERTS=/etc/tagyard/ca.pem');
  });

  test('has the key of a service account in a mounted file and nowhere else (docs/facts.md, Start and run)', () => {
    const serviceAccountKey = new Secret('the key');
    const extra = { serviceAccount: { ...FACTS, key: 'encrypted' }, serviceAccountKey };
    const desired = { slots: new Slots('127.77'), originPort: 8443 };
    for (const { spec } of desiredContainers({ ...loadedManifest(), ...extra }, desired)) {
      const options = createOptions({ name: 'c', mark: 'm', spec }, { keyFile: '/var/key.json' });
      expect(options.Env).toContain('GOOGLE_APPLICATION_CREDENTIALS=/etc/tagyard/service-account.json');
      expect(options.Env).toContain(`GOOGLE_CLOUD_PROJECT=${FACTS.projectId}`);
      expect(options.HostConfig?.Mounts).toEqual([
        {
          Type: 'bind',
          Source: '/var/key.json',
          Target: '/etc/tagyard/service-account.json',
          ReadOnly: true,
        },
      ]);
      expect(JSON.stringify([options, spec])).not.toContain('the key');
    }
  });

  test('has CONTAINER_CONFIG in the environment and nowhere else', () => {
    const secret = launches[0]?.spec.config.reveal() ?? '';
    const { Env = [], ...rest } = processing ?? {};
    expect(Env.filter((line) => line.includes(secret))).toEqual([`CONTAINER_CONFIG=${secret}`]);
    expect(JSON.stringify(rest)).not.toContain(secret);
  });
});
