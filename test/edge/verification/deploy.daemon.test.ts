import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { bundleVerification, COMPATIBILITY_DATE } from '../../../edge/bundle.ts';
import { VERIFICATION_FLAGS } from '../../../edge/host.ts';
import { wrangler } from '../../support/wrangler.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const CONFIG = 'edge/verification/wrangler.jsonc';

test('wrangler would upload the same bundle that the embedded instance runs, with one variable and no other binding', async () => {
  const home = await mkdtemp(join(tmpdir(), 'tagyard-wrangler-'));
  try {
    const out = join(home, 'out');
    const printed = await wrangler(root, home, 'deploy', '-c', CONFIG, '--dry-run', '--outdir', out);
    expect(printed).toContain('--dry-run: exiting now.');
    expect(printed.match(/\benv\.[A-Z_]+ \(\S*\)/g)).toEqual(['env.SCRIPTS_BY_PLACE ("false")']);
    expect(await readFile(join(out, 'verification.js'), 'utf8')).toBe(await bundleVerification());
  } finally {
    await rm(home, { recursive: true });
  }
});

test('the wrangler file has the date and flags of the embedded instance, and no secret', async () => {
  const text = await readFile(join(root, CONFIG), 'utf8');
  const config = JSON.parse(text.replace(/^\s*\/\/.*$/gm, ''));
  expect(config.compatibility_date).toBe(COMPATIBILITY_DATE);
  expect(config.compatibility_flags).toEqual([...VERIFICATION_FLAGS]);
  expect(JSON.stringify(config)).not.toMatch(/secret/i);
});

test('the bundle evaluates no text as code, and is under 62 KB', async () => {
  const bundle = await bundleVerification();
  expect(Buffer.byteLength(bundle)).toBeLessThan(62_000);
  expect(bundle).not.toMatch(/\beval\b|\bFunction\(|import\((?!["'`])/);
});
