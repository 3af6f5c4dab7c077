import { describe, expect, test } from 'vitest';
import { COMMON_CLAIMS, isClaim } from '../../../edge/http/request-headers.ts';

describe('headers that a client must not send to a container', () => {
  test('recognises all headers that a proxy drops by name, in every spelling that a server treats as the same name', () => {
    const spellings = COMMON_CLAIMS.flatMap((name) => [
      name,
      name.replaceAll('-', '_'),
      name.replaceAll('-', '.'),
    ]);
    expect(spellings.filter((name) => !isClaim(name))).toEqual([]);
    expect(new Set(COMMON_CLAIMS).size).toBe(COMMON_CLAIMS.length);
  });

  test.each([
    'x-gtm-server-preview',
    'x-gtm-auth',
    'x-gtm-preview',
    'x-gtm-debug',
    'user-agent',
    'cookie',
    'referer',
    'origin',
    'accept-language',
    'content-type',
    'authorization',
    'sec-ch-ua-platform',
    'x-client-data',
    'x-ship-to',
    'x-zip',
    'x-description',
    'x-recipient',
    'x-capacity',
    'x-membership',
  ])('%s passes', (name) => {
    expect(isClaim(name)).toBe(false);
  });
});
