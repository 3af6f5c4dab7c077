import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { insidePreviewName } from '../../../base/ownership.ts';
import { describeWith } from '../../support/components.ts';
import { INSTANCE, type NetworkLab, startNetworkLab } from '../../support/containers/network-lab.ts';

const SHOP = 'shop-1';
const PUBLIC_NAME = `${SHOP}-preview.example.net`;
const INSIDE_NAME = insidePreviewName({ instance: INSTANCE, host: 'tag-1' }, SHOP);
/** Another port than that of the lab's listeners. */
const PROXY_PORT = 8444;
/** No host has this address, so packets to it are lost. */
const UNREACHABLE = '198.51.100.99';
const WELL = [{ problem: null, fix: null }];

// Root, because it writes the firewall of a network namespace.
describeWith(['docker', 'root'], 'the processing server of a site (docs/facts.md, Start and run)', () => {
  let lab: NetworkLab;
  let host: Awaited<ReturnType<NetworkLab['startHost']>>;
  beforeAll(async () => {
    lab = await startNetworkLab();
    host = await lab.startHost({ originPort: PROXY_PORT, proxyHome: join(lab.home, 'host') });
    await host.call('apply', SHOP);
  }, 120_000);
  afterAll(async () => {
    await host?.call('apply');
    await host?.[Symbol.asyncDispose]();
    await lab?.[Symbol.asyncDispose]();
  });
  afterEach(() => lab.answerDns(null));

  const container = () => lab.nameOf(SHOP);

  test('reaches its preview server where public DNS has another, unreachable address for every name', async () => {
    await lab.answerDns(UNREACHABLE);
    // The control: DNS works and answers with the unreachable address, so the preview server isn't found by DNS.
    expect(await lab.resolve(await container(), PUBLIC_NAME)).toEqual([UNREACHABLE]);
    expect(await host.call('preview', SHOP)).toEqual(WELL);
  });

  test('reaches it where no name server answers', async () => {
    expect(await lab.resolve(await container(), PUBLIC_NAME)).toMatch(/^E(?:TIMEOUT|SERVFAIL|CONNREFUSED)$/);
    expect(await host.call('preview', SHOP)).toEqual(WELL);
  });

  test('uses a name that Docker’s resolver never asks another name server for', async () => {
    await lab.answerDns(UNREACHABLE);
    expect(await lab.resolve(await container(), INSIDE_NAME)).toBe('ENODATA');
  });

  test('reaches it where the host’s own rules refuse what doesn’t come from Cloudflare', async () => {
    const refuse = ['INPUT', '-p', 'tcp', '--dport', String(PROXY_PORT), '-j', 'REJECT'];
    await lab.exec('iptables', '--append', ...refuse);
    expect(await host.call('preview', SHOP)).toEqual(WELL);
    await lab.exec('iptables', '--delete', ...refuse);
  });

  test('that a firewall keeps from its preview server is reported with what to do', async () => {
    const refuse = ['-t', 'raw', '--insert', 'PREROUTING', '-p', 'tcp', '--dport', String(PROXY_PORT)];
    await lab.exec('iptables', ...refuse, '-i', 'tgy+', '-j', 'DROP');
    expect(await host.call('preview', SHOP)).toEqual([
      {
        problem: expect.stringContaining(`doesn’t reach the preview server as ${INSIDE_NAME}`),
        fix: expect.stringMatching(/^Allow connections from the sites’ bridges/),
      },
    ]);
    await lab.exec('iptables', '-t', 'raw', '--flush', 'PREROUTING');
  });
});
