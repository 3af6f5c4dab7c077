import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import getPort from 'get-port';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serveDemo } from '../../../sites/local/demo/servers.ts';

async function get(port: number, path: string): Promise<{ status: number; text: string }> {
  const { statusCode, body } = await request(`http://127.0.0.1:${port}${path}`);
  return { status: statusCode, text: await body.text() };
}

describe('the demo’s servers', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tagyard-demo-'));
  const file = join(folder, 'site.json');
  let demo: Awaited<ReturnType<typeof serveDemo>>;
  let shop = 0;
  let vendor = 0;

  beforeAll(async () => {
    [shop, vendor] = [await getPort({ host: '127.0.0.1' }), await getPort({ host: '127.0.0.1' })];
    demo = await serveDemo({ shopPort: shop, vendorPort: vendor, siteFile: file });
  });
  afterAll(async () => {
    await demo.close();
    rmSync(folder, { recursive: true });
  });

  test('serve the vendor’s script', async () => {
    expect(await get(vendor, '/gtm.js?id=GTM-DEMO1234')).toMatchObject({ status: 200 });
  });

  test.each([
    ['not written yet', undefined, 'data-problem="the demo site is still being created"'],
    [
      'without a snippet',
      { snippet: '', edgeUrl: 'http://edge.localhost' },
      'data-problem="the demo site has no snippet"',
    ],
    ['complete', { snippet: '<i>pasted</i>', edgeUrl: 'http://edge.localhost' }, '<i>pasted</i>'],
  ])('serve the shop with a site that is %s', async (_what, site, expected) => {
    if (site !== undefined) writeFileSync(file, JSON.stringify(site));
    const { status, text } = await get(shop, '/');
    expect(status).toBe(200);
    expect(text).toContain(expected);
  });

  test('send only the hits of the demo site’s container to its edge', async () => {
    const edgeUrl = 'http://edge.localhost';
    writeFileSync(file, JSON.stringify({ snippet: '<i></i>', edgeUrl, webTagId: 'GTM-DEMO1234' }));
    expect((await get(vendor, '/gtm.js?id=GTM-DEMO1234')).text).toContain(
      `"server_container_url":"${edgeUrl}"`,
    );
    expect((await get(vendor, '/gtm.js?id=GTM-OTHER123')).text).not.toContain('server_container_url');
  });

  test('say which port is in use, and free the other one', async () => {
    const free = await getPort({ host: '127.0.0.1' });
    const taken = { shopPort: free, vendorPort: vendor, siteFile: file };
    await expect(serveDemo(taken)).rejects.toThrow('EADDRINUSE');
    const again = await serveDemo({ ...taken, vendorPort: await getPort({ host: '127.0.0.1' }) });
    await again.close();
  });
});
