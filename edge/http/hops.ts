import { cloudflarePlace, statedPlace } from './place.ts';
import type { Hop } from './public-url.ts';
import { HOP_HEADER, OLD_HOP_HEADER } from './request-headers.ts';

const ADDRESS = /^[0-9a-fA-F:.]{2,45}$/;
const HOST = /^[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::\d{1,5})?$/;

/**
 * Reads what is known of the previous hop. If it is our own proxy, the proxy's headers count. Otherwise only what
 * the platform states of its peer counts: a client can set this neither on Cloudflare nor on the embedded edge.
 */
export function readHop({ headers, cf }: Request, isProxied: boolean): Hop {
  const address = wellFormed(headers.get('cf-connecting-ip'));
  if (!isProxied) {
    return {
      address,
      place: cloudflarePlace(cf),
      forwardedHost: null,
      forwardedProto: null,
      isTrusted: address !== null,
    };
  }
  // Our proxy adds the last entry of the list. The client may have sent the others.
  const forwardedFor = headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() ?? null;
  const proto = headers.get('x-forwarded-proto');
  const visitor = wellFormed(forwardedFor) ?? address;
  return {
    address: visitor,
    // The platform knows only where the proxy is.
    place: statedPlace(headers.get('x-forwarded-country'), headers.get('x-forwarded-region')),
    forwardedHost: hostOf(headers.get('x-forwarded-host')),
    forwardedProto: proto === 'http' || proto === 'https' ? proto : null,
    isTrusted: visitor !== null,
  };
}

/** A host with or without a port, in lower case; `null` for any other text. */
export function hostOf(given: string | null): string | null {
  const host = given?.toLowerCase() ?? '';
  // The pattern also matches a port out of range and an invalid IDNA name, which a URL can't contain.
  return HOST.test(host) && URL.canParse(`http://${host}`) ? host : null;
}

export function wellFormed(address: string | null): string | null {
  return ADDRESS.test(address ?? '') ? address : null;
}

/** True if a request has the header of the hop secret, whatever its value. */
export function hasHopHeader(headers: Headers): boolean {
  return headers.has(HOP_HEADER) || headers.has(OLD_HOP_HEADER);
}

/**
 * True if our proxy sent the request: it has one of the hop secrets, of which there are two while one replaces the other.
 * Compares with each in a time that depends on the lengths only, so that timing reveals nothing of them.
 */
export function isFromProxy(headers: Headers, secrets: readonly (string | undefined)[]): boolean {
  const given = headers.get(HOP_HEADER) ?? headers.get(OLD_HOP_HEADER);
  if (!given) return false;
  const encoder = new TextEncoder();
  const a = encoder.encode(given);
  return secrets.some((secret) => {
    const b = encoder.encode(secret);
    return a.byteLength === b.byteLength && crypto.subtle.timingSafeEqual(a, b);
  });
}
