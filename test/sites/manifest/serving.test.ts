import { expect, test } from 'vitest';
import { suspendSite } from '../../../gitops/http/site-edits.ts';
import { kvDocuments } from '../../../sites/manifest/documents.ts';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { readManifest } from '../../../sites/manifest/read.ts';
import { loadedManifest, manifestInput } from '../../support/manifest.ts';

const registry = (extra: object) =>
  kvDocuments(loadedManifest('acme', 1, extra), { originPort: 443 }).find(
    ({ namespace }) => namespace === 'SITE_REGISTRY',
  )?.value;

test('serving: false marks the registry, and nothing else does', () => {
  expect(registry({ serving: false })).toMatchObject({ off: true });
  expect(registry({ serving: true })).not.toHaveProperty('off');
  expect(registry({})).not.toHaveProperty('off');
});

test('resuming a site also switches its serving on', async () => {
  const off = formatManifest({ ...manifestInput('acme', 1, {}), suspend: true, serving: false });
  const text = await suspendSite('acme', false, off);
  const read = await readManifest(text, 'acme.yaml');
  expect(read).toMatchObject({ ok: true, manifest: { suspend: false } });
  expect(text).not.toContain('serving');
  expect(await suspendSite('acme', false, text)).toBe(text);
  const alone = formatManifest({ ...manifestInput('acme', 1, {}), serving: false });
  expect(await suspendSite('acme', false, alone)).not.toContain('serving');
  expect(await suspendSite('acme', true, alone)).toContain('serving: false');
});
