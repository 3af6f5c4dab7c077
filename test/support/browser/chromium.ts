import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, type BrowserContextOptions, chromium } from 'playwright-core';
import { noteFailure } from './disturbance.ts';

/** Flags for tests: no sandbox (CI runs as root), no QUIC (it would bypass the proxy), no requests of its own. */
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

/** The network and the settings of a test's browser. */
interface Network {
  /**
   * Addresses with an optional port, by name, such as `{ 'shop.example': '127.0.0.1:8443' }`. The first match wins; `*`
   * is every name. Chromium resolves `*.localhost` itself.
   */
  readonly hosts?: Readonly<Record<string, string>>;
  /** The key of a CA to trust: SHA-256 of its SubjectPublicKeyInfo in base64. */
  readonly trustedKey?: string;
}

export interface LaunchOptions extends Network {
  /** The value of `prefers-color-scheme`. */
  readonly colorScheme?: 'light' | 'dark';
  readonly viewport?: { readonly width: number; readonly height: number };
  /** A profile directory to keep, for a restart of the browser. Without it, the profile is temporary. */
  readonly profile?: string;
  /** Whether third-party cookies are stored and sent. Unset: Chromium's default. */
  readonly thirdPartyCookies?: boolean;
  /** `true`: pages are kept for navigation back, as in a browser that isn't driven by a test. */
  readonly backForwardCache?: boolean;
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

/** One browser for several visitors, which are isolated from each other. */
export interface Visitors {
  /** `await using visitor = await chromium.newContext();` */
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>;
  close(): Promise<void>;
}

/** A new visitor takes much less time than the start of a browser, which takes a second or more. */
export async function startChromium(network: Network = {}): Promise<Visitors> {
  const browser = await chromium.launch(program(network));
  return {
    newContext: async (options) => watched(await browser.newContext(options)),
    close: () => browser.close(),
  };
}

/**
 * A browser with a profile on disk. A temporary profile is deleted when the context is closed:
 * `await using browser = await launchChromium();`
 */
export async function launchChromium({
  colorScheme = 'light',
  viewport = { width: 1280, height: 900 },
  profile,
  thirdPartyCookies,
  backForwardCache = false,
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
  const ignoreDefaultArgs = backForwardCache ? ['--disable-back-forward-cache'] : [];
  const options = { ...program(network), colorScheme, viewport, ignoreDefaultArgs };
  const context = await chromium.launchPersistentContext(directory, options);
  if (profile === undefined) {
    context.once('close', () => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));
  }
  return watched(context);
}
