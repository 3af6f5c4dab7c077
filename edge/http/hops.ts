/** The header that proves that a request comes from our own proxy, or goes to it. */
export const HOP_HEADER = 'x-tagyard-hop';

/** What stands before the edge says of a request, once it has been decided what to believe. */
export interface Hop {
  /** The visitor's address; null where nobody says. */
  readonly address: string | null;
  /** Host (and port) and scheme that the proxy was asked on; null without the hop secret. */
  readonly forwardedHost: string | null;
  readonly forwardedProto: 'http' | 'https' | null;
}

const ADDRESS = /^[0-9a-fA-F:.]{2,45}$/;
const HOST = /^[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::\d{1,5})?$/;

/**
 * Reads the headers of the hop before. Without the hop secret only the platform's own `cf-connecting-ip` counts,
 * which a client can't set on Cloudflare (and not on the embedded edge); with it, what the proxy states.
 */
export function readHop(headers: Headers, secret: string | undefined): Hop {
  const address = wellFormed(headers.get('cf-connecting-ip'));
  if (!isTrusted(headers.get(HOP_HEADER), secret)) {
    return { address, forwardedHost: null, forwardedProto: null };
  }
  // A list's last entry is the one that our proxy added; what stands before it is the client's word.
  const seen = headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() ?? null;
  const host = headers.get('x-forwarded-host')?.toLowerCase() ?? '';
  const proto = headers.get('x-forwarded-proto');
  return {
    address: wellFormed(seen) ?? address,
    // A port out of range and a name that isn't IDNA look like a host, too, and no address can be made of them.
    forwardedHost: HOST.test(host) && URL.canParse(`http://${host}`) ? host : null,
    forwardedProto: proto === 'http' || proto === 'https' ? proto : null,
  };
}

/**
 * The address as the visitor's browser sees it: the proxy's word on host and scheme, where it names a host that is the
 * site's own (its domains, active or not); else the edge hostname.
 */
export function publicUrl(requested: URL, hop: Hop, ownHosts: readonly string[]): URL {
  if (hop.forwardedHost === null && hop.forwardedProto === null) return requested;
  const protocol = hop.forwardedProto ?? requested.protocol.slice(0, -1);
  const forwarded = (hop.forwardedHost ?? '').replace(/:\d+$/, '');
  const ours = ownHosts.some((own) => isUnder(forwarded, own));
  const host = ours ? hop.forwardedHost : requested.host;
  return new URL(`${protocol}://${host}${requested.pathname}${requested.search}`);
}

/** Whether a host is a domain or a name below it. */
export const isUnder = (host: string, domain: string) => host === domain || host.endsWith(`.${domain}`);

function wellFormed(address: string | null): string | null {
  return ADDRESS.test(address ?? '') ? address : null;
}

/** Compares in a time that depends on the lengths only. */
function isTrusted(given: string | null, secret: string | undefined): boolean {
  if (!given || !secret) return false;
  const encoder = new TextEncoder();
  const [a, b] = [encoder.encode(given), encoder.encode(secret)];
  return a.byteLength === b.byteLength && crypto.subtle.timingSafeEqual(a, b);
}
