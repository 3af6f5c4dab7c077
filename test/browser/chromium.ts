import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium } from 'playwright-core';

/**
 * What makes a browser quiet enough to be a witness: no sandbox (CI runs as root), no QUIC (it would pass by the
 * proxy), and no calls of its own to anywhere.
 */
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** What a browser finds in place of the internet. */
export interface Network {
  /**
   * Names that resolve to an address of ours, with a port of ours or without: `{ 'shop.example': '127.0.0.1:8443' }`
   * say, the first match wins and `*` is every name. Chromium knows `*.localhost` by itself.
   */
  readonly hosts?: Readonly<Record<string, string>>;
  /** The key of a CA to trust: SHA-256 of its SubjectPublicKeyInfo in base64. */
  readonly trustedKey?: string;
}

export interface LaunchOptions extends Network {
  /** What the page's `prefers-color-scheme` says. */
  readonly colorScheme?: 'light' | 'dark';
  readonly viewport?: { readonly width: number; readonly height: number };
  /** The profile of a browser that is to be started again; kept. Without it the browser has one of its own. */
  readonly profile?: string;
  /** Whether cookies of other sites than the page's are kept and sent; unset, as this Chromium comes. */
  readonly thirdPartyCookies?: boolean;
}

/** A real Chromium: `CHROMIUM_PATH`, else Debian's. */
function program({ hosts = {}, trustedKey }: Network) {
  const rules = Object.entries(hosts).map(([name, address]) => `MAP ${name} ${address}`);
  return {
    executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
    args: [
      ...FLAGS,
      ...(rules.length > 0 ? [`--host-resolver-rules=${rules.join(',')}`] : []),
      ...(trustedKey === undefined ? [] : [`--ignore-certificate-errors-spki-list=${trustedKey}`]),
    ],
  };
}

/**
 * One browser for many visitors, who know nothing of each other: `await using visitor = await browser.newContext();`
 * That takes a small part of the second or more that a start does.
 */
export function startChromium(network: Network = {}): Promise<Browser> {
  return chromium.launch(program(network));
}

/**
 * A browser with a profile on disk, as people have one. A profile of its own is gone when the context is closed:
 * `await using browser = await launchChromium();`
 */
export async function launchChromium({
  colorScheme = 'light',
  viewport = { width: 1280, height: 900 },
  profile,
  thirdPartyCookies,
  ...network
}: LaunchOptions = {}): Promise<BrowserContext> {
  const directory = profile ?? mkdtempSync(join(tmpdir(), 'tagyard-chromium-'));
  if (thirdPartyCookies !== undefined) {
    mkdirSync(join(directory, 'Default'), { recursive: true });
    const preferences = {
      profile: {
        cookie_controls_mode: thirdPartyCookies ? 0 : 1,
        block_third_party_cookies: !thirdPartyCookies,
      },
    };
    writeFileSync(join(directory, 'Default', 'Preferences'), JSON.stringify(preferences));
  }
  const options = { ...program(network), colorScheme, viewport };
  const context = await chromium.launchPersistentContext(directory, options);
  if (profile === undefined) {
    context.once('close', () => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));
  }
  return context;
}
