import type { Reply } from '../../../edge/kit/upstream.ts';

/** The vendor's script with its real headers. */
export function vendorScript(body = 'window.vendorRan=1'): Reply {
  return {
    headers: {
      'content-type': 'application/javascript; charset=UTF-8',
      'cache-control': 'private, max-age=900',
      'cross-origin-resource-policy': 'cross-origin',
      'access-control-allow-origin': '*',
      'access-control-allow-credentials': 'true',
      'set-cookie': 'vendor=1; Path=/',
      server: 'Google Tag Manager',
    },
    body,
  };
}
