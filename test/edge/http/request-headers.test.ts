import { describe, expect, test } from 'vitest';
import { COMMON_CLAIMS, isClaim } from '../../../edge/http/request-headers.ts';

describe('headers that a client must not send to a container', () => {
  test('include all that a proxy drops by name, in every spelling that a server treats as the same', () => {
    const spellings = COMMON_CLAIMS.flatMap((name) => [
      name,
      name.replaceAll('-', '_'),
      name.replaceAll('-', '.'),
    ]);
    expect(spellings.filter((name) => !isClaim(name))).toEqual([]);
    expect(new Set(COMMON_CLAIMS).size).toBe(COMMON_CLAIMS.length);
  });

  test.each([
    'z-forwarded-for',
    'x-client-forwarded',
    'x-real-host',
    'x-proxy-host',
    'wl-proxy-ssl',
    'x-edge-location',
    'x-backend-host',
    'front-end-https',
    'x-scheme',
    'x-url-scheme',
    'x-arr-ssl',
    'x-server-port',
    'x-fd-clientip',
    'x-bluecoat-via',
    'x-gfe-request-trace',
    'x-gfe-ssl',
    'x-google-geo-header',
    'x-google-apps-metadata',
    'x-cloud-trace-context',
    'x-remoteaddr',
    'x-trueclientip',
    'x-visitorip',
    'x-ipaddress',
    'x-country-name',
    'x-user-countryregion',
    'x-postal-code',
    'x-client-subdivision',
    'x-continent',
  ])('include %s', (name) => {
    expect(isClaim(name)).toBe(true);
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
    'upgrade-insecure-requests',
    'sec-fetch-dest',
    'traceparent',
    'x-shopify-shop-domain',
    'x-goog-resource-uri',
    'x-amz-sns-message-type',
    'x-wc-webhook-source',
    'x-hub-signature-256',
    'x-proton-id',
    'x-support-level',
    'x-ghost',
  ])('don’t include %s', (name) => {
    expect(isClaim(name)).toBe(false);
  });
});
