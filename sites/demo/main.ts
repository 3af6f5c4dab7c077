import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { buildShop } from './shop/app.ts';
import { buildVendor } from './vendor/app.ts';
import { defaultContainer, type WebContainer } from './vendor/google-tag.ts';

/** The demo's two servers in one process: the shop (`SHOP_PORT`) and the stand-in for Google's servers (`VENDOR_PORT`). */
const port = z.coerce.number().int().min(0).max(65535).default(0);
const env = z
  .object({
    SHOP_PORT: port,
    VENDOR_PORT: port,
    /** A JSON file with the shop's snippet and edge. It is written when the demo site exists, and read for every page. */
    DEMO_SITE_FILE: z.string(),
  })
  .parse(process.env);

const siteSchema = z.object({
  snippet: z.string().min(1),
  edgeUrl: z.url(),
  vendorUrl: z.url().optional(),
  consoleUrl: z.url().optional(),
  /** The web container whose hits go to the demo site. */
  webTagId: z.string().optional(),
});

async function site(): Promise<z.output<typeof siteSchema>> {
  const text = await readFile(env.DEMO_SITE_FILE, 'utf8').catch((cause: unknown) => {
    throw new Error('the demo site is still being created', { cause });
  });
  const { data, error } = siteSchema.safeParse(JSON.parse(text));
  if (data === undefined) throw new Error('the demo site has no snippet', { cause: error });
  return data;
}

/** The demo site's own web container sends its hits to the demo site; any other one has no server container. */
async function containerOf(id: string): Promise<WebContainer> {
  const own = await site().catch(() => null);
  return { ...defaultContainer(id), serverContainerUrl: own?.webTagId === id ? own.edgeUrl : null };
}

const [shop, vendor] = [buildShop({ site }), buildVendor({ containerOf })];
const listen = (on: number) => ({ port: on, host: '127.0.0.1' });
await Promise.all([shop.listen(listen(env.SHOP_PORT)), vendor.listen(listen(env.VENDOR_PORT))]);

const stop = () =>
  void Promise.all([shop.close(), vendor.close()]).then(() => {
    if (process.connected) process.disconnect();
  });
process.once('SIGTERM', stop);
process.once('SIGINT', stop);
// The supervisor has exited.
process.once('disconnect', stop);
process.send?.({ type: 'ready' });
