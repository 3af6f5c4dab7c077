import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { ALLOCATOR, V8_OPTIONS } from '../support/gitops/provisioner-options.ts';

const script = `
  for (let round = 0, kept = []; round < 100; round += 1) {
    kept = Array.from({ length: 20_000 }, (_, number) => ({ number, of: [number] }));
  }
  const young = v8.getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
  process.stdout.write(String(young.space_size / 2 ** 20));
`;

test('V8 accepts the options, which keep its young generation small', () => {
  const youngMiB = Number(
    execFileSync(process.execPath, [...V8_OPTIONS, '-e', script], { encoding: 'utf8' }),
  );
  expect(youngMiB).toBeGreaterThan(0);
  expect(youngMiB).toBeLessThanOrEqual(16);
});

test('`npm run provisioner` uses the same options and allocator settings', () => {
  const { scripts } = z
    .object({ scripts: z.record(z.string(), z.string()) })
    .parse(JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')));
  const env = Object.entries(ALLOCATOR).map(([name, value]) => `${name}=${value}`);
  expect(scripts.provisioner).toBe(
    [...env, 'node', ...V8_OPTIONS, '--env-file-if-exists=.env', 'gitops/main.ts'].join(' '),
  );
});
