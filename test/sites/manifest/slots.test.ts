import { describe, expect, test } from 'vitest';
import { containerSpecs } from '../../../sites/manifest/containers.ts';
import { Slots } from '../../../sites/manifest/slots.ts';
import { loadedManifest } from '../../support/manifest.ts';

const at = (holder: string, port = 20000) => ({ site: 'shop', port, holder });

describe('slots', () => {
  test('suffice for three images of each of 1,000 sites with 16 replicas, without duplicates', () => {
    const slots = new Slots('127.77');
    const taken = new Map<string, string>();
    const collisions: string[] = [];
    for (let number = 0; number < 1_000; number += 1) {
      for (const name of ['first', 'second', 'third']) {
        const manifest = loadedManifest(`shop-${number}`, number, {
          image: `sha256:${name === 'first' ? 'a' : name === 'second' ? 'b' : 'c'}${'0'.repeat(63)}`,
          resources: { processing: { replicas: 16 }, preview: { onDemand: number % 2 === 0 } },
        });
        for (const { hash, port, address, boundAddress } of containerSpecs(manifest, {
          slots,
          originPort: 443,
        })) {
          for (const slot of new Set([`${address}:${port}`, `${boundAddress}:${port}`])) {
            // A container on demand has two slots, and keeps both while its spec is unchanged.
            if ((taken.get(slot) ?? hash) !== hash) collisions.push(slot);
            taken.set(slot, hash);
          }
        }
      }
    }
    expect(collisions).toEqual([]);
    expect(taken.size).toBe(1_000 * 3 * 17 + 500 * 3);
  });

  test('stay the same for a container, and differ from all others with the same port', () => {
    const slots = new Slots('127.77');
    expect(slots.addressOf(at('a'))).toBe('127.77.0.1');
    expect(slots.addressOf(at('b'))).toBe('127.77.0.2');
    expect(slots.addressOf(at('a'))).toBe('127.77.0.1');
    expect(slots.addressOf(at('a', 20001))).toBe('127.77.0.1');
    expect(slots.edition('shop')).toBe(0);
  });

  test('are those of the existing containers, whatever was assigned before', () => {
    const slots = new Slots('127.77');
    slots.addressOf(at('a'));
    slots.addressOf({ ...at('b'), site: 'other' });
    slots.found(at('a'), '127.77.0.2');
    expect(slots.addressOf(at('a'))).toBe('127.77.0.2');
    expect(slots.addressOf(at('b'))).toBe('127.77.0.3');
    // Resources that were computed from the old slots are outdated.
    expect([slots.edition('shop'), slots.edition('other')]).toEqual([1, 1]);
    slots.found(at('a'), '127.77.0.2');
    expect(slots.edition('shop')).toBe(1);
  });

  test('are released once two keepOnly in a row omit their holder, and are assigned again only after all others', () => {
    const slots = new Slots('127.77');
    slots.addressOf(at('a'));
    slots.addressOf({ ...at('b'), site: 'removed' });
    slots.keepOnly(new Set(['a']));
    expect(slots.addressOf(at('b'))).toBe('127.77.0.2');
    slots.keepOnly(new Set(['a', 'b']));
    slots.keepOnly(new Set(['a']));
    expect([slots.edition('shop'), slots.edition('removed')]).toEqual([0, 0]);
    slots.keepOnly(new Set(['a']));
    expect([slots.edition('shop'), slots.edition('removed')]).toEqual([0, 1]);
    expect(slots.addressOf(at('a'))).toBe('127.77.0.1');
    expect(slots.addressOf(at('b'))).toBe('127.77.0.3');
  });

  test('suffice for any number of specs over time, because those of past specs are released', () => {
    const slots = new Slots('127.77');
    for (let spec = 0; spec < 254 * 254 + 10; spec += 1) {
      slots.addressOf(at(`spec-${spec}`));
      if (spec % 1000 === 0) slots.keepOnly(new Set([`spec-${spec}`]));
    }
    expect(slots.addressOf(at('next'))).toMatch(/^127\.77\./);
  });

  test('that a copy assigns stay free in the original', () => {
    const slots = new Slots('127.77');
    slots.addressOf(at('a'));
    const copy = slots.copy();
    expect([copy.addressOf(at('a')), copy.addressOf(at('b'))]).toEqual(['127.77.0.1', '127.77.0.2']);
    expect(slots.addressOf(at('c'))).toBe('127.77.0.2');
  });

  test('begin after the existing slots, and ignore addresses of other subnets', () => {
    const slots = new Slots('127.77');
    slots.found(at('old'), '127.77.3.254');
    slots.found(at('elsewhere'), '127.78.9.9');
    expect(slots.addressOf(at('new'))).toBe('127.77.4.1');
    expect(slots.addressOf(at('elsewhere'))).toBe('127.77.4.2');
  });

  test('wrap around at the end of the subnet', () => {
    const slots = new Slots('127.77');
    slots.found(at('first'), '127.77.0.1');
    slots.found(at('last'), '127.77.253.254');
    expect(slots.addressOf(at('next'))).toBe('127.77.0.2');
  });
});
