import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium } from 'playwright-core';
import { noteFailure } from './disturbance.ts';

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

function watched(context: BrowserContext): BrowserContext {
  return context.on('requestfailed', (request) => noteFailure(request.failure()?.errorText));
}

/** One browser for many visitors, who know nothing of each other. */
export interface Visitors {
  /** `await using visitor = await chromium.newContext();` */
  newContext(): Promise<BrowserContext>;
  close(): Promise<void>;
}

/** A visitor takes a small part of the second or more that a browser takes to start. */
export async function startChromium(network: Network = {}): Promise<Visitors> {
  const browser = await chromium.launch(program(network));
  return {
    newContext: async () => watched(await browser.newContext()),
    close: () => browser.close(),
  };
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
  return watched(context);
}
