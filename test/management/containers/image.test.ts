import { expect, test } from 'vitest';
import { demandImage, repositoryOf } from '../../../management/containers/image.ts';

const digest = `sha256:${'b'.repeat(64)}`;
const ofNewSites = `other.example/gtm@${digest}`;
const settings = {
  superAdmins: ['root'],
  image: ofNewSites,
  imageRepositories: ['gcr.io/google/gtm', 'registry.example:5000/gtm'],
};
const current = `sha256:${'a'.repeat(64)}`;

test.each([
  [`gcr.io/google/gtm@${digest}`, 'gcr.io/google/gtm'],
  [`gcr.io/google/gtm:stable@${digest}`, 'gcr.io/google/gtm'],
  [`registry.example:5000/gtm@${digest}`, 'registry.example:5000/gtm'],
  [`registry.example:5000/gtm:1.2@${digest}`, 'registry.example:5000/gtm'],
  [digest, 'local'],
])('%s is of the repository %s', (image, expected) => {
  expect(repositoryOf(image)).toBe(expected);
});

test.each<[string, string, string | undefined, string | null]>([
  ['root', 'no image', undefined, null],
  ['owner', 'no image', undefined, null],
  ['owner', 'the image that it has', current, null],
  ['owner', 'an image of an allowed repository', `gcr.io/google/gtm@${digest}`, 'forbidden'],
  ['owner', 'another image', `evil.example/gtm@${digest}`, 'forbidden'],
  ['root', 'an image of an allowed repository', `gcr.io/google/gtm:stable@${digest}`, null],
  ['root', 'the image of new sites', ofNewSites, null],
  ['root', 'an image of another registry', `evil.example/gtm@${digest}`, 'image_not_allowed'],
  ['root', 'an image with a longer name', `gcr.io/google/gtm/evil@${digest}`, 'image_not_allowed'],
  ['root', 'a local image', digest, 'image_not_allowed'],
])('%s sets %s (refused: $3)', (subject, _what, image, refusal) => {
  const judge = () => demandImage(image, current, { subject, name: subject, email: '' }, settings);
  if (refusal === null) expect(judge).not.toThrow();
  else expect(judge).toThrow(expect.objectContaining({ code: refusal }));
});
