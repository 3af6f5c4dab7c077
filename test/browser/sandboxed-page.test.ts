import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { renderSandboxSnippet } from '../../plugins/custom_loader/snippet.ts';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

const events = z.object({
  events: z.array(z.object({ path: z.string(), headers: z.array(z.tuple([z.string(), z.string()])) })),
});
/** As the documentation asks for: the choice comes from the shop's own record. */
const DEFAULTS = `window.dataLayer=window.dataLayer||[];function gtag(){dataLayer.push(arguments)}
gtag('consent','default',{ad_storage:'denied',analytics_storage:'granted'});`;

describeWith('chromium', 'a page in a sandbox, which has no origin', () => {
  let stage: BrowserStage;
  let chromium: Visitors;
  beforeAll(async () => {
    stage = await startBrowserStage();
    chromium = await startChromium(stage.browser);
  });
  afterAll(async () => {
    await chromium.close();
    await stage.close();
  });

  let containers = 0;
  const hits = async () => {
    const response = await fetch(`${stage.tagServerUrl}/tagyard-demo/events`);
    return events.parse(await response.json()).events.filter(({ path }) => path === '/g/collect');
  };

  test.each([
    ['a frame with the snippet', 'edge', (code: string) => `<script>${DEFAULTS}</script>${code}`],
    [
      'a frame with the snippet, to a custom domain',
      'custom',
      (code: string) => `<script>${DEFAULTS}</script>${code}`,
    ],
    [
      'a shop’s pixel, which is JavaScript alone',
      'edge',
      (code: string) => `<script>${DEFAULTS}${code.replace(/^<script>|<\/script>$/g, '')}</script>`,
    ],
  ] as const)('%s: its hit arrives at the tag server', async (_what, host, contentOf) => {
    // A container of its own, because the edge keeps copies of its script.
    const name = `sandbox${containers}`;
    containers += 1;
    const site = await stage.site({
      domains: [
        {
          domain: `${name}.example`,
          webTagId: `GTM-${name.toUpperCase()}`,
          token: `ct_container0of0${name}`,
        },
      ],
      customDomains: [`metrics.${name}.example`],
    });
    stage.webContainer = () => ({
      googleTag: 'G-SHOP1234',
      destinations: [],
      serverContainerUrl: site.url[host],
    });
    const containerToken = site.manifest.domains[0]?.token ?? '';
    const snippet = renderSandboxSnippet({ edgeUrl: site.url.edge, containerToken });
    stage.serve('/pixel', `<title>Pixel</title>${contentOf(snippet)}`);
    stage.serve('/favicon.ico', '');
    stage.serve('/', '<title>Shop</title><iframe sandbox="allow-scripts" src="/pixel"></iframe>');
    const [before, direct] = [await hits(), stage.direct()];

    await using browser = await chromium.newContext();
    const page = await browser.newPage();
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error') problems.push(message.text());
    });
    const answered: { readonly url: URL; readonly status: number }[] = [];
    page.on('response', (response) =>
      answered.push({ url: new URL(response.url()), status: response.status() }),
    );
    await page.goto(site.url.shop);
    const arrived = await eventually(async () => {
      const all = await hits();
      expect(all).toHaveLength(before.length + 1);
      expect(answered.some(({ url }) => url.pathname === '/g/collect')).toBe(true);
      return all.at(-1);
    });
    const frame = page.frames().find((each) => each !== page.mainFrame());
    expect(await frame?.evaluate('origin')).toBe('null');
    expect(arrived?.headers.find(([name]) => name.toLowerCase() === 'origin')).toContain('null');
    const ours = answered.filter(({ url }) => [site.url.edge, site.url.custom].includes(url.origin));
    expect(ours.map(({ url, status }) => [url.origin, url.pathname, status])).toEqual([
      [site.url.edge, `/c/${containerToken}.js`, 200],
      [site.url[host], '/g/collect', 200],
    ]);
    expect(ours[1]?.url.searchParams.get('gcs')).toBe('G101');
    // Scripts of a container also read the answers to their hits.
    const read = `fetch(${JSON.stringify(`${site.url[host]}/g/collect?v=2`)},
      { method: 'POST', credentials: 'include', body: 'en=x' }).then(({ status }) => status)`;
    expect(await frame?.evaluate(read)).toBe(200);
    expect(stage.direct()).toBe(direct);
    expect(problems).toEqual([]);
  });
});
