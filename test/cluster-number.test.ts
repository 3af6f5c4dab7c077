import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { takeNumber } from './support/kubernetes/cluster-number.ts';

const MODULE = new URL('support/kubernetes/cluster-number.ts', import.meta.url).href;

test('clusters of one process and of others have different numbers, as long as they run', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tagyard-numbers-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const script = `const { takeNumber } = await import(${JSON.stringify(MODULE)});
    console.log(takeNumber(new AsyncDisposableStack(), ${JSON.stringify(folder)}));`;
  const another = async () => Number((await execa(process.execPath, ['--eval', script])).stdout);
  await using first = new AsyncDisposableStack();
  expect(takeNumber(first, folder)).toBe(0);
  {
    await using second = new AsyncDisposableStack();
    expect(takeNumber(second, folder)).toBe(1);
    expect(await another()).toBe(2);
  }
  expect(await another()).toBe(1);
  await first.disposeAsync();
  expect(await another()).toBe(0);
});
