import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { describeWith } from '../support/components.ts';
import { memoryDaemon, SECRET } from '../support/gitops/memory-daemon.ts';
import { World } from '../support/management/world.ts';
import { memoryObjects } from '../support/traffic/memory-objects.ts';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const RULES = path('../../deploy/prometheus/tagyard.rules.yaml');

/** The names that a text of metrics has; of a histogram, those of its parts. */
const namesIn = (text: string) =>
  [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name = '', type]) =>
    type === 'histogram' ? ['_count', '_sum', '_bucket'].map((part) => name + part) : [name],
  );

test('each metric of the rules is one that a daemon has', async () => {
  const used = new Set((await readFile(RULES, 'utf8')).match(/\btagyard_\w+/g));
  const daemon = await memoryDaemon();
  const world = await World.open({ logLevel: 'silent', rawObjects: memoryObjects() });
  try {
    await daemon.call('POST', '/provision?wait=10', daemon.manifest('one', 1));
    const host = await daemon.app.inject({ url: '/metrics', headers: { 'x-secret': SECRET } });
    const management = await world.management?.app.inject({ url: '/metrics', remoteAddress: '127.0.0.1' });
    const known = [host.body, management?.body ?? ''].flatMap(namesIn);
    expect([...used].filter((name) => !known.includes(name))).toEqual([]);
    expect(used.size).toBeGreaterThan(10);
  } finally {
    await world.close();
    await daemon.close();
  }
});

describeWith('prometheus', 'the rules', () => {
  test('are valid', async () => {
    expect((await execa('promtool', ['check', 'rules', RULES])).stdout).toContain('SUCCESS');
  });

  test('alert on what goes wrong, and on nothing else', async () => {
    const { stdout } = await execa('promtool', ['test', 'rules', path('alert-rules.yaml')]);
    expect(stdout).toContain('SUCCESS');
  });
});
