/**
 * What the two most common blocking lists match of a site's addresses (docs/block-lists.md). Only names that are
 * plausible for a site are here; the lists have many more. A test compares each entry with the lists themselves.
 */

type BlockList = 'EasyList' | 'EasyPrivacy';

/** First labels of hosts. `*` at the start or the end is any text. */
const HOSTS: readonly (readonly [list: BlockList, labels: string])[] = [
  [
    'EasyList',
    `ad1 ads ads1 ads2 ad-server adserver adserving adsrv adtrack advert adverts aff-ads prebid publicidade top-ad videoad
    ad-api-* *-contrib-ads`,
  ],
  [
    'EasyPrivacy',
    `analytics api-analytics criteo eventtracking events-collector fathom hit-counter insights-collector matomo
    metrics-collector openedlog piwik piwik-* pixel-tracking posthog sgtm ssgtm statcount statcounter-* track track-pixel
    trackjs webanalytics adobe-analytics-* analytics-events-* *-click-tracker *-tracking-pixel`,
  ],
];

/** First labels that EasyList matches only for pages of another registrable domain. */
const FOREIGN_HOSTS = 'a-ads adv affiliate affiliates banner banners promo uads';

/**
 * Paths of Google's tags that EasyPrivacy matches on every host, even a site's own. Such a request is blocked for its
 * path or query, not for the host's name.
 */
const PATHS: readonly RegExp[] = [
  /\/gtm\.js/,
  /\/gtag\/js\?/,
  /&l=dataLayer&cx=c/,
  /\/ns\.html\?id=GTM-/,
  /\/collect\?v=/,
];

/** First segments of paths that the lists match on every host. Only 6 to 12 letters and digits, as a prefix has. */
const SEGMENTS: readonly (readonly [list: BlockList, segments: string])[] = [
  [
    'EasyList',
    `160x600 468x60 480x60 640x100 728x90 800x160 adhandler admanager adsdelivery adserve adverts bannerads exoads exonob
    neverblock pageear peelads phpads phpadsnew porpoiseant prebid prebidlink publicidad publicidade publicidades reklam
    reklame tagman videoad videoads`,
  ],
  [
    'EasyPrivacy',
    `acecounter addpageview dynamicyield gen204 hitcount hitcounter hittracker matomo misites onetag opentag optimizelyjs
    pixeljs roverclk roverimp snowplow statscounter statstracker trackvisit traffictrade webanalytics webcounter
    webtracking`,
  ],
];

interface HostRule {
  readonly list: BlockList;
  readonly label: string;
  /** Pages of the same registrable domain are not affected. */
  readonly foreignOnly: boolean;
}

export const HOST_RULES: readonly HostRule[] = [
  ...HOSTS.flatMap(([list, labels]) =>
    labels.split(/\s+/).map((label) => ({ list, label, foreignOnly: false })),
  ),
  ...FOREIGN_HOSTS.split(' ').map((label) => ({ list: 'EasyList' as const, label, foreignOnly: true })),
];

/** The rule that matches a host by its first label; `null`: none. `isOwn`: the pages are of its registrable domain. */
export function blockedHost(host: string, { isOwn }: { readonly isOwn: boolean }): HostRule | null {
  const [first = ''] = host.split('.');
  return (
    HOST_RULES.find(({ label, foreignOnly }) => !(foreignOnly && isOwn) && isLabel(first, label)) ?? null
  );
}

/** The list that matches a path with its query on every host; `null`: none. */
export function blockedPath(path: string): BlockList | null {
  return PATHS.some((pattern) => pattern.test(path)) ? 'EasyPrivacy' : null;
}

export const SEGMENT_RULES = SEGMENTS.flatMap(([list, segments]) =>
  segments.split(/\s+/).map((segment) => ({ list, segment })),
);

/** The list that matches a path by its first segment; `null`: none. */
export function blockedSegment(path: string): BlockList | null {
  const [, first] = path.split('/');
  return SEGMENT_RULES.find(({ segment }) => segment === first)?.list ?? null;
}

/** Names the list and what it matches, for a message about the host. */
export function describeRule({ list, label }: HostRule): string {
  return `${list} blocks requests to hosts that begin with “${label}.”`;
}

function isLabel(given: string, label: string): boolean {
  if (label.startsWith('*')) return given.endsWith(label.slice(1));
  return label.endsWith('*') ? given.startsWith(label.slice(0, -1)) : given === label;
}
