import { chmodSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { delimiter, join, relative } from 'node:path';
import { afterAll, afterEach, expect } from 'vitest';
import { MACHINE_PATH, REFUSALS, undeclaredPrograms } from './components.ts';

const STARTED = join(REFUSALS, '.started');

/** What was refused since the last call, a message for each program. */
export function takeStarted(): string[] {
  const messages = new Set(readFileSync(STARTED, 'utf8').split('\n').filter(Boolean));
  truncateSync(STARTED);
  return [...messages];
}

/**
 * Runs before each test file. The first folder of PATH gets a program for each one that belongs to a component which
 * the file doesn't declare. It refuses, and the test that started it fails: on a machine without the component it would
 * fail, too, instead of being left out. The folder stays the same for all files of a process, because modules keep PATH.
 */
const path = expect.getState().testPath ?? '';
const file = relative('', path);
rmSync(REFUSALS, { recursive: true, force: true });
mkdirSync(REFUSALS);
writeFileSync(STARTED, '');
// A test may start a program as another user.
chmodSync(STARTED, 0o666);
for (const program of undeclaredPrograms(readFileSync(path, 'utf8'))) {
  // The browser's path can be absolute.
  if (program.includes('/')) continue;
  const message = `${file} starts ${program}, and declares no component that has it: describeWith or testWith of test/support/components.ts`;
  const script = `#!/bin/sh\necho '${message}' | tee -a '${STARTED}' >&2\nexit 127\n`;
  writeFileSync(join(REFUSALS, program), script, { mode: 0o755 });
}
process.env.PATH = `${REFUSALS}${delimiter}${MACHINE_PATH}`;

function assertNothingStarted(): void {
  const messages = takeStarted();
  if (messages.length > 0) throw new Error(messages.join('\n'));
}

afterEach(assertNothingStarted);
afterAll(() => {
  try {
    assertNothingStarted();
  } finally {
    rmSync(REFUSALS, { recursive: true, force: true });
  }
});
