import { expect, test } from 'vitest';
import { manifestSchema } from '../../../gitops/manifest/schema.ts';
import { containerEtag, isMatch } from '../../../management/containers/etag.ts';
import { withoutConfig } from '../../../management/db/manifest-view.ts';
import { presentContainer } from '../../../management/view/present.ts';
import { manifestInput } from '../../support/manifest.ts';

const manifest = withoutConfig(manifestSchema.parse(manifestInput()));
const view = presentContainer(
  {
    id: manifest.container,
    seq: '1',
    site_id: manifest.site,
    client_id: manifest.client,
    status: 'active',
    status_reason: null,
    status_detail: null,
    health: 'healthy',
    manifest,
    revision: null,
    created_at: new Date(0),
    updated_at: new Date(0),
    operation: null,
  },
  { edgePublicUrl: 'https://{host}', vendorUrl: 'https://vendor.example' },
);
const etag = containerEtag(manifest, view);

test.each([
  ['the tag of the same version', etag, manifest, true],
  ['a list with that tag', `"0000.0000", ${etag}`, manifest, true],
  ['*', ' * ', manifest, true],
  ['a tag of another manifest', etag, { ...manifest, name: 'Other' }, false],
  ['a weak tag', `W/${etag}`, manifest, false],
  ['the tag of another status', containerEtag(manifest, { ...view, status: 'verified' }), manifest, true],
])('If-Match with %s', (_what, ifMatch, current, expected) => {
  expect(isMatch(ifMatch, current)).toBe(expected);
});

test('the tag changes with the status, and not with the order of the manifest’s members', () => {
  const reversed = Object.fromEntries(Object.entries(manifest).reverse()) as typeof manifest; // the same members
  expect(containerEtag(reversed, view)).toBe(etag);
  expect(containerEtag(manifest, { ...view, status: 'verified' })).not.toBe(etag);
});
