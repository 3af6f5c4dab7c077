import { expect, test } from 'vitest';
import { NotTried } from '../not-tried.ts';
import { pairStarter } from './pair.ts';

const never = async () => {
  throw new Error('nothing may be started');
};

test('no pair is started where Docker’s bridge has no address on this machine', async () => {
  const pairs = pairStarter({ gateway: async () => null, preview: () => 'http://127.0.0.1:1', start: never });
  await expect(pairs.start({ trusts: true })).rejects.toThrow(NotTried);
  await pairs.close();
});

test('no pair is started without a preview server, and the reason is kept', async () => {
  const pairs = pairStarter({
    gateway: never,
    preview() {
      throw new NotTried('there is none');
    },
    start: never,
  });
  await expect(pairs.start({ trusts: true })).rejects.toThrow('there is none');
  await pairs.close();
});
