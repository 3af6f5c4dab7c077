import { expect, test } from 'vitest';
import { howToInstall, missingPackages } from '../../../base/runtime/optional.ts';

test('a package that is not installed is missing', () => {
  expect(missingPackages(['zod', '@tagyard/none', 'miniflare', 'none'])).toEqual(['@tagyard/none', 'none']);
});

test('a checkout has all packages of the embedded parts', () => {
  expect(missingPackages()).toEqual([]);
});

test('the message names what is missing and how to install it', () => {
  expect(howToInstall(['miniflare'])).toMatch(/\(miniflare\); install them: npm install /);
});
