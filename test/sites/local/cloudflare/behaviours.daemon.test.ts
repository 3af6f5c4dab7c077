import { afterAll, beforeAll, describe, test } from 'vitest';
import { cloudflareBehaviours } from '../../../conform/cloudflare/behaviours.ts';
import { quotaBehaviours } from '../../../conform/cloudflare/quotas.ts';
import {
  EMULATOR_SCRIPT,
  EMULATOR_TOKEN,
  startEmulator,
  type TestEmulator,
} from '../../../support/cloudflare/emulator.ts';
import { testClock } from '../../../support/test-clock.ts';

describe('the emulator and Cloudflare', () => {
  const clock = testClock();
  let cloudflare: TestEmulator;
  beforeAll(async () => {
    cloudflare = await startEmulator({ now: clock.date });
  });
  afterAll(() => cloudflare.close());

  const target = () => ({
    url: cloudflare.url,
    token: EMULATOR_TOKEN,
    zone: { id: cloudflare.zone.id, name: cloudflare.zone.name },
    account: cloudflare.account,
    prefix: 'conform-0123abcd',
    script: EMULATOR_SCRIPT,
    advance: clock.advance,
    sleep: async (ms: number) => clock.advance(ms),
  });

  test.each(cloudflareBehaviours)('$name', ({ check }) => check(target()));
  test.each(quotaBehaviours)('$name', ({ check }) => check(target()));
});
