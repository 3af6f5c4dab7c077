/** True if the browser has the cookie that blocks the edge for it. The page's script sets it. */
export function isEdgeBlocked(cookieHeader: string | undefined): boolean {
  return pairsOf(cookieHeader).includes('shop_edge=blocked');
}

/**
 * `Set-Cookie` lines that delete every cookie that the browser has sent, those that scripts can't read included, on
 * `hostname` and on each domain above it that can have cookies. The cookie that blocks the edge stays.
 */
export function expireAll(cookieHeader: string | undefined, hostname: string): string[] {
  const labels = hostname.split('.');
  const domains = labels.slice(0, -1).map((_, from) => `; Domain=${labels.slice(from).join('.')}`);
  return pairsOf(cookieHeader)
    .map((pair) => pair.split('=', 1)[0])
    .filter((name) => name !== undefined && name !== 'shop_edge')
    .flatMap((name) => ['', ...domains].map((domain) => `${name}=; Path=/; Max-Age=0; Secure${domain}`));
}

const pairsOf = (header = ''): string[] => header.split(/; */).filter((pair) => pair !== '');
