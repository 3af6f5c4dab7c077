import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { buildShop } from './shop/app.ts';
import { buildVendor } from './vendor/app.ts';
import { defaultContainer, type WebContainer } from './vendor/google-tag.ts';

interface DemoOptions {
  /** Ports on 127.0.0.1. */
  readonly shopPort: number;
  readonly vendorPort: number;
  /** A JSON file with the shop's snippet and edge. It is written when the demo site exists, and read for every page. */
  readonly siteFile: string;
}

const siteSchema = z.object({
  snippet: z.string().min(1),
  edgeUrl: z.url(),
  vendorUrl: z.url().optional(),
  consoleUrl: z.url().optional(),
  /** The web container whose hits go to the demo site. */
  webTagId: z.string().optional(),
});

/** Serves the shop and the stand-in for Google's servers. Rejects if a port is in use. */
export async function serveDemo({
  shopPort,
  vendorPort,
  siteFile,
}: DemoOptions): Promise<{ close(): Promise<void> }> {
  async function site(): Promise<z.output<typeof siteSchema>> {
    const text = await readFile(siteFile, 'utf8').catch((cause: unknown) => {
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

  const shop = buildShop({ site });
  const vendor = buildVendor({ containerOf });
  const close = async () => void (await Promise.all([shop.close(), vendor.close()]));
  // Waits for both: a server that is closed while it begins to listen would still listen afterwards.
  const listening = await Promise.allSettled([
    shop.listen({ host: '127.0.0.1', port: shopPort }),
    vendor.listen({ host: '127.0.0.1', port: vendorPort }),
  ]);
  const failed = listening.find((one) => one.status === 'rejected');
  if (failed !== undefined) {
    await close();
    throw failed.reason;
  }
  return { close };
}
