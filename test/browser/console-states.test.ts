import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { describeWith } from '../support/components.ts';
import { ConsoleStage } from '../support/console/stage.ts';
import { eventually } from '../support/eventually.ts';
import { memoryObjects } from '../support/traffic/memory-objects.ts';
import { batchOf, deliver, recordAt } from '../support/traffic/records.ts';

describeWith('chromium', 'the console shows a container', () => {
  let stage: ConsoleStage;
  let chromium: Visitors;
  let client: string;
  const objects = memoryObjects();
  beforeAll(async () => {
    [stage, chromium] = await Promise.all([ConsoleStage.open({ rawObjects: objects }), startChromium()]);
    client = await stage.world.client('Acme');
  });
  afterAll(async () => {
    await chromium?.close();
    await stage?.close();
  });

  /** A container whose file in git was changed by hand, once the API shows the state that follows. */
  const edited = async (label: string, state: string, change: (text: string) => string) => {
    const id = await stage.container(client, `${label}.example`, { name: label, siteId: label });
    await stage.world.repo.commit({
      site: label,
      subject: 'By hand',
      author: { name: 'Olga', email: 'olga@example.test' },
      trailers: {},
      edit: (text) => change(text ?? ''),
    });
    await eventually(async () => {
      const { body } = await stage.world.call('GET', `/server-containers/${id}`, { as: 'owner' });
      expect(body.state.name).toBe(state);
    });
    return id;
  };

  test.each([
    [
      'off',
      'Off',
      'Serving is switched off',
      (text: string) => `${text}serving: false\n`,
      'Switch serving on',
    ],
    ['paused', 'Paused', 'It is suspended', (text: string) => `${text}suspend: true\n`, 'Resume'],
    ['change_refused', 'Change refused', 'The newest manifest in git is refused', refused, null],
  ] as const)(
    'that is %s in its list, on its page and in the overview',
    async (state, label, said, change, button) => {
      const name = state.replace('_', '-');
      const id = await edited(name, state, change);
      await using visitor = await chromium.newContext();
      const { page, complaints } = await stage.logIn(visitor, 'owner', '/console/containers');
      const row = page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) });
      await row.getByText(label, { exact: true }).waitFor();
      await page.goto(`${stage.url}/console`);
      if (state === 'change_refused') {
        await page.locator('#attention').getByText(said).waitFor();
        await page
          .locator('#attention')
          .getByRole('link', { name: `Solve ${name}` })
          .click();
        await page.waitForURL(`${stage.url}/console/containers/${id}`);
      } else {
        // A person's own decision needs nobody's attention.
        await page.locator('#attention').waitFor();
        expect(await page.locator('#attention').getByText(said).count()).toBe(0);
        await page.goto(`${stage.url}/console/containers/${id}`);
      }
      await page.getByRole('status').filter({ hasText: said }).waitFor();
      if (button !== null) {
        await page.getByRole('button', { name: button, exact: true }).first().click();
        await page.getByText(/^Serving 1 domain/).waitFor();
      }
      expect(complaints).toEqual([]);
    },
  );

  test('whose first visit came while its set-up was open', async () => {
    const id = await stage.container(client, 'visited.example', { name: 'visited', siteId: 'visited' });
    await using visitor = await chromium.newContext();
    const { page } = await stage.logIn(visitor, 'owner', `/console/containers/${id}/setup`);
    const visit = page.locator('#visit');
    await visit.getByText('No visit has been counted yet').waitFor();
    const boot = { container: id, route: '/boot', method: 'POST' };
    await deliver(objects, batchOf([recordAt(new Date().toISOString(), boot)]));
    await visit.getByText('First visit seen').waitFor();
  });
});

function refused(text: string): string {
  return text.replace(/^name:/m, 'nmae:');
}
