import { describe, expect, test } from 'vitest';
import { desiredContainers } from '../../../../gitops/appliers/containers/desired.ts';
import { createOptions, readSlot } from '../../../../gitops/appliers/containers/docker-spec.ts';
import { Slots } from '../../../../gitops/manifest/slots.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const launches = desiredContainers(loadedManifest(), { slots: new Slots('127.77'), originPort: 8443 }).map(
  ({ spec }) => ({ name: `tagyard-t-${spec.role}`, mark: 'tgy1 t tag-1 acme-shop 0123abcd', spec }),
);
const [processing, preview] = launches.map((launch) => createOptions(launch, { caFile: '/var/ca.pem' }));

describe('the options of a container in Docker', () => {
  test('is read-only, without privileges and capabilities, not root, and within limits', () => {
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

  test('has its slot in a label, because a stopped container lists no ports', () => {
    const { spec } = launches[0] ?? {};
    const { address, boundAddress, port } = spec ?? {};
    expect(readSlot(processing?.Labels ?? {})).toEqual({ address, boundAddress, port });
    expect(readSlot({})).toBeNull();
    expect(readSlot({ 'tagyard.slot': '10.0.0.1 10.0.0.1 80' })).toBeNull();
  });

  test('mounts the CA read-only', () => {
    expect(processing?.HostConfig?.Binds).toEqual(['/var/ca.pem:/etc/tagyard/ca.pem:ro']);
    expect(processing?.Env).toContain('NODE_EXTRA_CA_CERTS=/etc/tagyard/ca.pem');
  });

  test('has CONTAINER_CONFIG in the environment and nowhere else', () => {
    const secret = launches[0]?.spec.config.reveal() ?? '';
    const { Env = [], ...rest } = processing ?? {};
    expect(Env.filter((line) => line.includes(secret))).toEqual([`CONTAINER_CONFIG=${secret}`]);
    expect(JSON.stringify(rest)).not.toContain(secret);
  });
});
