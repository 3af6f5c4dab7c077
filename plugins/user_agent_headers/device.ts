/** What a browser says of itself; what isn't recognised is missing. */
interface Device {
  readonly type: 'desktop' | 'mobile' | 'tablet';
  readonly os: string | undefined;
  readonly browser: string | undefined;
  /** The major version. */
  readonly version: string | undefined;
}

/** The first that matches counts: most browsers also name those that they are like. */
const BROWSERS: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['Edge', /\bEdg(?:e|A|iOS)?\/(\d+)/],
  ['Opera', /\b(?:OPR|OPT|Opera)\/(\d+)/],
  ['Samsung Internet', /\bSamsungBrowser\/(\d+)/],
  ['Firefox', /\b(?:Firefox|FxiOS)\/(\d+)/],
  ['Chrome', /\b(?:Chrome|CriOS)\/(\d+)/],
  ['Safari', /\bVersion\/(\d+)\S* (?:Mobile\/\S+ )?Safari\//],
];

const SYSTEMS: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['Windows', /\bWindows NT\b/],
  ['iOS', /\b(?:iPhone|iPad|iPod)\b/],
  ['Android', /\bAndroid\b/],
  ['macOS', /\bMac OS X\b/],
  ['ChromeOS', /\bCrOS\b/],
  ['Linux', /\bLinux\b/],
];

const TABLET = /\biPad\b|\bAndroid\b(?!.*\bMobile\b)|\bTablet\b/;
const MOBILE = /\bMobile\b|\biPhone\b|\biPod\b/;

/** Reads a user agent. */
export function deviceOf(agent: string): Device {
  const [browser, pattern] = BROWSERS.find(([, each]) => each.test(agent)) ?? [];
  const [os] = SYSTEMS.find(([, each]) => each.test(agent)) ?? [];
  const handheld = MOBILE.test(agent) ? 'mobile' : 'desktop';
  return {
    type: TABLET.test(agent) ? 'tablet' : handheld,
    os,
    browser,
    version: pattern?.exec(agent)?.[1],
  };
}
