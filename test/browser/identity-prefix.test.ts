import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { cookie, settled, state, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { type ForwardedShop, startForwardedShop } from '../support/forwarders/shop.ts';

describeWith(['chromium', 'nginx'], 'identity on pages whose own nginx forwards a prefix', () => {
  let stage: BrowserStage;
  let chromium: Visitors;
  let shop: ForwardedShop;
  let domain: string;
  beforeAll(async () => {
    stage = await startBrowserStage();
    shop = await startForwardedShop(stage, 'nginx');
    domain = shop.host.replace(/^www\./, '');
    // All hosts of the domain are the shop's one server, and each forwards the prefix.
    const hosts = { [`*.${domain}`]: `127.0.0.1:${shop.port}`, ...stage.browser.hosts };
    chromium = await startChromium({ ...stage.browser, hosts });
  });
  afterAll(async () => {
    await chromium?.close();
    await shop?.close();
    await stage?.close();
  });

  test('stays one session of one profile from www to blog and back, by each host’s own prefix', async () => {
    await using browser = await chromium.newContext();
    const open = async (host: string) => {
      const { page, asked, errors } = await visit(browser, `https://${host}.${domain}/`);
      expect((await settled(page))?.gtm).toBe('loaded');
      expect(errors).toEqual([]);
      expect(asked).toContain(`https://${host}.${domain}${shop.path}/boot`);
      return await state(page);
    };
    const first = await open('www');
    expect(first?.profile?.isNew).toBe(true);
    expect(first?.session?.isNew).toBe(true);
    for (const host of ['blog', 'www', 'shop.blog']) {
      const next = await open(host);
      expect(next?.profile).toEqual({ id: first?.profile?.id, isNew: false });
      expect(next?.session).toMatchObject({ id: first?.session?.id, isNew: false });
    }
    expect((await cookie(browser, '_fpid'))?.domain).toBe(`.${domain}`);
    expect((await cookie(browser, 'tagyard_session'))?.domain).toBe(`.${domain}`);
    expect(await shop.site.profile(first?.profile?.id)).toBeNull();
  });
});
