import { execa } from 'execa';
import { afterEach, expect, test } from 'vitest';
import { EMULATOR_TOKEN, startEmulator, type TestEmulator } from '../../../support/cloudflare/emulator.ts';
import { DEBIAN_PYTHON, describeWith } from '../../../support/components.ts';

/** What certbot's plugin does for a dns-01 challenge: add the record, then delete it. */
const PROGRAM = `
import sys
from certbot_dns_cloudflare._internal.dns_cloudflare import _CloudflareClient
client = _CloudflareClient(api_token=sys.argv[1])
name = '_acme-challenge.shop.example.net'
getattr(client, sys.argv[2])('shop.example.net', name, 'a-validation', *map(int, sys.argv[3:]))
`;

describeWith('certbot', 'certbot’s plugin for Cloudflare', () => {
  let cloudflare: TestEmulator;
  afterEach(() => cloudflare.close());

  test('finds the zone, adds the challenge’s record and deletes that one alone', async () => {
    cloudflare = await startEmulator();
    const path = `/zones/${cloudflare.zone.id}/dns_records`;
    const certbot = (...args: readonly string[]) =>
      execa(DEBIAN_PYTHON, ['-W', 'ignore', '-c', PROGRAM, EMULATOR_TOKEN, ...args], {
        env: { CLOUDFLARE_API_URL: cloudflare.url },
      });
    const contents = async () =>
      (await cloudflare.call('GET', `${path}?type=TXT`)).json.result.map(
        ({ name, content }: { name: string; content: string }) => [name, content],
      );
    const name = '_acme-challenge.shop.example.net';
    await cloudflare.call('POST', path, { type: 'TXT', name, content: 'of-another-order' });

    await certbot('add_txt_record', '120');
    expect(await contents()).toEqual([
      [name, 'a-validation'],
      [name, 'of-another-order'],
    ]);
    await certbot('del_txt_record');
    expect(await contents()).toEqual([[name, 'of-another-order']]);
  });
});
