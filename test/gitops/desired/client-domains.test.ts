import { describe, expect, test } from 'vitest';
import { copiedSecrets } from '../../../gitops/desired/client-domains.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { Secret } from '../../../sites/manifest/secrets.ts';
import { loadedManifest } from '../../support/manifest.ts';

describe('copied secrets', () => {
  const site = (name: string, client: number, text: string, isBound: boolean): LoadedManifest => ({
    ...loadedManifest(name, client, { client: `7c9e6679-7425-40de-944b-e07fc1f9000${client}` }),
    config: new Secret(text),
    ...(isBound ? {} : { unbound: ['containerConfig'] }),
  });
  const original = site('original', 1, 'a secret', true);
  const copy = site('copy', 2, 'a secret', false);

  test('are those of another client’s site, where only that one is bound to its container', () => {
    const others = [site('sibling', 1, 'a secret', false), site('other', 2, 'another secret', false)];
    expect([...copiedSecrets([copy, original, ...others])]).toEqual([['copy', 'original']]);
    expect(copiedSecrets([copy, site('bound-too', 1, 'a secret', false)]).size).toBe(0);
  });

  test('only secrets of the sites in `among` count', () => {
    expect([...copiedSecrets([copy, original], [copy]).keys()]).toEqual(['copy']);
    expect(copiedSecrets([copy, original], [site('third', 3, 'a third', true)]).size).toBe(0);
  });

  test('each site is read equally often, however many there are', () => {
    const readsOf = (count: number) => {
      let reads = 0;
      const live = Array.from({ length: count }, (_, index) => {
        const one = site(`site-${index}`, index % 10, `secret ${index}`, true);
        return Object.defineProperty(one, 'config', {
          get: () => {
            reads += 1;
            return original.config;
          },
        });
      });
      copiedSecrets(live);
      return reads;
    };
    expect(readsOf(100)).toBe(10 * readsOf(10));
  });
});
