import { expect, test } from 'vitest';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { parseInThread } from '../../../sites/manifest/parse-threads.ts';
import { manifestInput } from '../../support/manifest.ts';

test('a text that crashes its thread is invalid, and the next text gets another thread', async () => {
  const file = 'acme-shop.yaml';
  const text = formatManifest(manifestInput());
  // Not a text: the thread throws outside the parser.
  const crashing = { text: null as unknown as string, file };
  for (let round = 0; round < 3; round += 1) {
    expect(await parseInThread(crashing)).toMatchObject({ ok: false, reason: 'InvalidManifest' });
    expect(await parseInThread({ text, file })).toMatchObject({ ok: true });
  }
});
