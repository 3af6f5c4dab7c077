import { systemClock } from '../../base/clock.ts';
import { startChromium } from '../support/browser/chromium.ts';
import { ConsoleStage } from '../support/console/stage.ts';
import type { Bench, Suite } from './bench.ts';

const PER_SECOND = 500;
const SECONDS = 20;
const TICKS_PER_SECOND = 10;

/** What a page under test has collected. */
interface Observed {
  /** Milliseconds of each task that took longer than 50. */
  readonly tasks: readonly number[];
  readonly mostRows: number;
}

const OBSERVE = `
  window.observed = { tasks: [], mostRows: 0 };
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.observed.tasks.push(duration);
  }).observe({ type: 'longtask' });
  setInterval(() => {
    window.observed.mostRows = Math.max(window.observed.mostRows, document.querySelectorAll('.requests tbody tr').length);
  }, 200);
`;
const RESET = 'window.observed = { tasks: [], mostRows: 0 }';

/**
 * The console’s live tail in Chromium: tasks that would delay a key or a click. The control is the same page without a
 * record.
 */
export const consoleTail: Suite = async (bench) => {
  const [stage, chromium] = await Promise.all([ConsoleStage.open(), startChromium()]);
  try {
    const client = await stage.world.client();
    const container = await stage.container(client, 'acme.example');
    await using visitor = await chromium.newContext();
    await visitor.addInitScript({ content: OBSERVE });
    const path = `/console/containers/${container}/requests?view=live`;
    const { page } = await stage.logIn(visitor, 'viewer', path);
    await page.getByText('Following').waitFor();
    const observe = async (perSecond: number): Promise<Observed> => {
      await page.evaluate(RESET);
      for (let tick = 0; tick < SECONDS * TICKS_PER_SECOND; tick += 1) {
        const records = Array.from({ length: perSecond / TICKS_PER_SECOND }, () => ({ container }));
        const sent = records.length === 0 ? undefined : stage.report(records);
        await Promise.all([sent, systemClock.sleep(1_000 / TICKS_PER_SECOND)]);
      }
      return await page.evaluate<Observed>('window.observed');
    };
    await figures(bench, `the same page without a record, ${SECONDS} s`, await observe(0));
    await figures(bench, `the live tail at ${PER_SECOND} records/s, ${SECONDS} s`, await observe(PER_SECOND));
  } finally {
    await chromium.close();
    await stage.close();
  }
};

async function figures(bench: Bench, name: string, { tasks, mostRows }: Observed): Promise<void> {
  await bench(`${name}: tasks over 50 ms`, { unit: 'tasks', run: () => tasks.length });
  await bench('  the longest of them (0: none)', { unit: 'ms', run: () => Math.max(0, ...tasks) });
  await bench('  most rows in the page', { unit: 'rows', run: () => mostRows });
}
