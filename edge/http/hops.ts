/** Carries the hop secret, which proves that a request comes from our own proxy or from the edge. */
export const HOP_HEADER = 'x-tagyard-hop';

/** What the hop before the edge says of a request, as far as it is trusted. */
export interface Hop {
  /** The visitor's address; null where it is unknown. */
  readonly address: string | null;
  /** Host (with port) and scheme of the request to our proxy; null without the hop secret. */
  readonly forwardedHost: string | null;
  readonly forwardedProto: 'http' | 'https' | null;
}

const ADDRESS = /^[0-9a-fA-F:.]{2,45}$/;
const HOST = /^[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::\d{1,5})?$/;

/**
 * Reads the headers of the previous hop. With the hop secret, the proxy's own headers count. Without it, only the
 * platform's `cf-connecting-ip` counts, which a client can set neither on Cloudflare nor on the embedded edge.
 */
export function readHop(headers: Headers, secret: string | undefined): Hop {
  const address = wellFormed(headers.get('cf-connecting-ip'));
  if (!isTrusted(headers.get(HOP_HEADER), secret)) {
    return { address, forwardedHost: null, forwardedProto: null };
  }
  // Our proxy adds the last entry of the list. The client may have sent the others.
  const forwardedFor = headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() ?? null;
  const host = headers.get('x-forwarded-host')?.toLowerCase() ?? '';
  const proto = headers.get('x-forwarded-proto');
  return {
    address: wellFormed(forwardedFor) ?? address,
    // The pattern also matches a port out of range and an invalid IDNA name, which no URL can hold.
    forwardedHost: HOST.test(host) && URL.canParse(`http://${host}`) ? host : null,
    forwardedProto: proto === 'http' || proto === 'https' ? proto : null,
  };
}

/**
 * The URL as the visitor's browser sees it. The scheme is the proxy's, where it states one; the host is the proxy's only
 * where it is one of the site's own (`ownHosts`, active or not), else the edge hostname.
 */
export function publicUrl(requested: URL, hop: Hop, ownHosts: readonly string[]): URL {
  if (hop.forwardedHost === null && hop.forwardedProto === null) return requested;
  const protocol = hop.forwardedProto ?? requested.protocol.slice(0, -1);
  const forwarded = (hop.forwardedHost ?? '').replace(/:\d+$/, '');
  const ours = ownHosts.some((own) => isUnder(forwarded, own));
  const host = ours ? hop.forwardedHost : requested.host;
  return new URL(`${protocol}://${host}${requested.pathname}${requested.search}`);
}

/** True where `host` is `domain` or a subdomain of it. */
export const isUnder = (host: string, domain: string) => host === domain || host.endsWith(`.${domain}`);

function wellFormed(address: string | null): string | null {
  return ADDRESS.test(address ?? '') ? address : null;
}

/** Compares in a time that depends on the lengths only, so that timing reveals nothing of the secret. */
function isTrusted(given: string | null, secret: string | undefined): boolean {
  if (!given || !secret) return false;
  const encoder = new TextEncoder();
  const [a, b] = [encoder.encode(given), encoder.encode(secret)];
  return a.byteLength === b.byteLength && crypto.subtle.timingSafeEqual(a, b);
}
