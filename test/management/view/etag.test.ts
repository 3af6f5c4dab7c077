import { expect, test } from 'vitest';
import { withoutSecrets } from '../../../management/db/manifest-view.ts';
import { containerEtag, demandMatch, isKnown } from '../../../management/view/etag.ts';
import { presentContainer } from '../../../management/view/present.ts';
import { manifestSchema } from '../../../sites/manifest/schema.ts';
import { manifestInput } from '../../support/manifest.ts';

const manifest = withoutSecrets(manifestSchema.parse(manifestInput()));
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
    host_reason: null,
    host_detail: null,
    host_refusal: null,
    dns: {},
    first_visit_at: null,
    state: {
      name: 'serving',
      since: '2026-01-01T00:00:00.000Z',
      sentence: '',
      remedy: null,
      detail: null,
      also: [],
    },
    manifest,
    revision: null,
    created_at: new Date(0),
    updated_at: new Date(0),
    operation: null,
  },
  {
    edgePublicUrl: 'https://{host}',
    customPublicUrl: 'https://{host}',
    vendorUrl: 'https://vendor.example',
    domainProof: 'off' as const,
    forwarderKey: null,
  },
);
const etag = containerEtag(manifest, view);

test.each<[string, string | undefined, typeof manifest, boolean]>([
  ['no header', undefined, manifest, true],
  ['the tag of the same version', etag, manifest, true],
  ['a list with that tag', `"0000.0000", ${etag}`, manifest, true],
  ['*', ' * ', manifest, true],
  ['a tag of another manifest', etag, { ...manifest, name: 'Other' }, false],
  ['a list with the current tag behind a weak one', `W/"0000.0000", ${etag}`, manifest, true],
  ['text that is no tag', etag.slice(1, -1), manifest, false],
  ['the tag of another status', containerEtag(manifest, { ...view, status: 'verified' }), manifest, true],
])('If-Match with %s (match: $3)', (_what, ifMatch, current, expected) => {
  const judge = () => demandMatch(ifMatch, current);
  if (expected) expect(judge).not.toThrow();
  else expect(judge).toThrow(expect.objectContaining({ code: 'precondition_failed' }));
});

test('If-Match with a weak tag never matches, and the refusal says what to send', () => {
  expect(() => demandMatch(`W/${etag}`, manifest)).toThrow(
    expect.objectContaining({
      code: 'precondition_failed',
      message: expect.stringContaining('send the tag without W/'),
    }),
  );
});

test.each<[string, string | undefined, boolean]>([
  ['no header', undefined, false],
  ['the tag', etag, true],
  ['the weak tag, as a proxy that compresses makes it', `W/${etag}`, true],
  ['a list with the weak tag', `"x" , W/${etag}`, true],
  ['*', '*', true],
  ['another tag', 'W/"other"', false],
])('If-None-Match with %s (match: $2)', (_what, ifNoneMatch, expected) => {
  expect(isKnown(ifNoneMatch, etag)).toBe(expected);
});

test('the tag changes with the status, and not with the order of the manifest’s members', () => {
  const reversed = Object.fromEntries(Object.entries(manifest).reverse()) as typeof manifest; // the same members
  expect(containerEtag(reversed, view)).toBe(etag);
  expect(containerEtag(manifest, { ...view, status: 'verified' })).not.toBe(etag);
});
