import { RetryableError } from '../../../base/errors.ts';
import { contentHash } from '../../../base/ownership.ts';
import { type MemoryWorld, memoryApplier } from '../../support/gitops/memory-applier.ts';
import { applierConformance, CONFORMANCE_IDENTITY } from './conformance.ts';

applierConformance(
  'the memory applier',
  async () => {
    const world: MemoryWorld = new Map();
    let broken = false;
    return {
      applier: memoryApplier({
        target: 'kv',
        identity: CONFORMANCE_IDENTITY,
        world,
        desired: ({ site, name, adopt }) => [
          {
            target: 'kv',
            site,
            key: site,
            hash: contentHash(name),
            summary: `keep ${site}`,
            adopt,
            spec: name,
          },
        ],
        fault: () => (broken ? new RetryableError('the world is unreadable') : undefined),
      }),
      async plantForeign({ key }) {
        world.set(key, { mark: null, hash: 'foreign' });
        return async () => world.get(key);
      },
      async breakObserve() {
        broken = true;
        return async () => {
          broken = false;
        };
      },
      async close() {},
    };
  },
  { change: (manifest) => ({ ...manifest, name: 'Acme Shop, renamed' }) },
);
