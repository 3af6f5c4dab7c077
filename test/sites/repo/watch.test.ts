import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { watchRepo } from '../../../sites/repo/watch.ts';
import { eventually } from '../../support/eventually.ts';

test('reports a path that can’t be watched, and yields for changes of the others', async () => {
  using stack = new DisposableStack();
  const dir = mkdtempSync(join(tmpdir(), 'tagyard-watch-'));
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  const heads = join(dir, 'refs', 'heads');
  mkdirSync(heads, { recursive: true });
  writeFileSync(join(dir, 'HEAD'), 'ref: refs/heads/main');
  // A link that points to itself can't be read, not even by root.
  symlinkSync('packed-refs', join(dir, 'packed-refs'));

  const stop = new AbortController();
  const errors: unknown[] = [];
  let events = 0;
  const options = { remote: false, pollSeconds: 3_600, onError: (error: unknown) => errors.push(error) };
  const watching = (async () => {
    for await (const _ of watchRepo(dir, options, stop.signal)) events += 1;
  })();
  await eventually(() => expect(errors).toContainEqual(expect.objectContaining({ code: 'ELOOP' })));
  let writes = 0;
  await eventually(() => {
    writes += 1;
    writeFileSync(join(heads, 'main'), String(writes));
    expect(events).toBeGreaterThan(1);
  });
  stop.abort();
  await watching;
});
