import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { startChromium } from '../support/browser/chromium.ts';
import { missing } from '../support/components.ts';
import { settled } from '../support/console/pages.ts';
import { startInstance, temporaryHome } from '../support/instance.ts';
import { makeDemoData } from './demo-data.ts';
import { FOLDER, MOST_BYTES, PICTURES, type Picture } from './pictures.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const COLLECTED_MS = 120_000;
const ENV = { TAGYARD_CONTAINERS: 'process', TAGYARD_PROXY: 'embedded' };

/** Takes the pictures of an instance with demo data. */
async function takePictures(): Promise<void> {
  const reason = missing('chromium');
  if (reason !== null) throw new Error(`screenshots need Chromium: ${reason}`);
  using home = temporaryHome();
  const first = await startInstance(home.path, ENV);
  try {
    await makeDemoData(first, home.path);
  } finally {
    await first.stop();
  }
  // A start searches the whole bucket, so that the records of yesterday are counted at once.
  await using instance = await startInstance(home.path, ENV);
  const { management, demo } = instance.run;
  const chromium = await startChromium();
  try {
    await mkdir(join(ROOT, FOLDER), { recursive: true });
    for (const picture of PICTURES) {
      await using visitor = await chromium.newContext({
        viewport: picture.viewport,
        colorScheme: picture.colorScheme,
        reducedMotion: 'reduce',
      });
      const page = await visitor.newPage();
      await page.goto(management.url + picture.path.replace('{shop}', demo.container));
      // The first button logs in as the demo's owner.
      await page.getByRole('main').getByRole('button').first().click();
      const bytes = await take(page, picture);
      await writeFile(join(ROOT, FOLDER, picture.file), bytes);
      console.log(`${FOLDER}/${picture.file}: ${Math.ceil(bytes.length / 1024)} KiB`);
      if (bytes.length > MOST_BYTES) throw new Error(`${picture.file} is larger than ${MOST_BYTES} bytes`);
    }
  } finally {
    await chromium.close();
  }
}

async function take(page: Page, { shows, typed = {} }: Picture): Promise<Buffer> {
  await page.getByText('Log out').waitFor({ state: 'attached' });
  for (const [label, value] of Object.entries(typed)) {
    await page.getByLabel(label, { exact: true }).fill(value);
  }
  await page.getByText(shows).first().waitFor({ timeout: COLLECTED_MS });
  await settled(page);
  return await page.screenshot({ animations: 'disabled', caret: 'hide' });
}

await takePictures();
