import type { BrowserContext, Response } from 'playwright-core';

const DAY_SECONDS = 86_400;
/** How long Safari keeps a cookie set by a script, or by a host that seems to have another owner than the page. */
const CAP_SECONDS = 7 * DAY_SECONDS;

/** Reports to the test which cookies scripts write. */
const NOTE_WRITES = `const { get, set } = Object.getOwnPropertyDescriptor(Document.prototype, 'cookie');
  Object.defineProperty(document, 'cookie', {
    get: () => get.call(document),
    set(text) { set.call(document, text); noteScriptCookie(text.split('=')[0].trim()); },
  });`;

/** Who set a cookie last: a script, or the answer of a host. */
type Writer = 'script' | { readonly host: string };

/** What Safari 16.4 and newer do with a visitor's cookies (docs/facts.md, Cookies and browsers). */
interface SafariCookies {
  /**
   * Lets days pass after a page view: what was set since the last call ends after 7 days at most, if Safari caps it.
   * Cookies that have ended by then are gone, and so are those that end with the browser.
   */
  pass(days: number): Promise<void>;
}

/** Call it before the visitor's first page. `isCapped`: Safari caps cookies that the answers of this host set. */
export async function keepCookiesAsSafari(
  browser: BrowserContext,
  isCapped: (host: string) => boolean,
): Promise<SafariCookies> {
  const writers = new Map<string, Writer[]>();
  const note = (name: string, writer: Writer) => {
    writers.set(name, [...(writers.get(name) ?? []), writer]);
  };
  const reading: Promise<void>[] = [];
  /** The cookies that have been judged already. */
  let judged = new Set<string>();
  async function noteAnswer(response: Response): Promise<void> {
    const headers = await response.headersArray();
    for (const { name, value } of headers) {
      if (name.toLowerCase() !== 'set-cookie') continue;
      const [cookie = ''] = value.split('=', 1);
      note(cookie, { host: new URL(response.url()).hostname });
    }
  }
  browser.on('response', (response) => reading.push(noteAnswer(response)));
  await browser.exposeFunction('noteScriptCookie', (name: string) => note(name, 'script'));
  await browser.addInitScript({ content: NOTE_WRITES });

  type Cookie = Awaited<ReturnType<BrowserContext['cookies']>>[number];
  async function rewrite(change: (cookie: Cookie) => Cookie | undefined): Promise<void> {
    const kept = (await browser.cookies()).flatMap((cookie) => change(cookie) ?? []);
    await browser.clearCookies();
    await browser.addCookies(kept);
  }
  const keyOf = ({ name, domain, path, value }: Cookie) => [name, domain, path, value].join(' ');
  /** A browser refuses a cookie for a foreign domain, so an answer that sets one doesn't count. */
  const mayHaveSet = (writer: Writer, domain: string) =>
    writer === 'script' || `.${writer.host}`.endsWith(domain.replace(/^\.?/, '.'));

  async function cap(): Promise<void> {
    await Promise.all(reading.splice(0));
    const end = Date.now() / 1000 + CAP_SECONDS;
    await rewrite((cookie) => {
      const writer = writers.get(cookie.name)?.findLast((one) => mayHaveSet(one, cookie.domain));
      if (writer === undefined && !judged.has(keyOf(cookie))) {
        throw new Error(`${cookie.name} was set neither by document.cookie nor by an answer`);
      }
      const caps = writer !== undefined && (writer === 'script' || isCapped(writer.host));
      return caps && cookie.expires > end ? { ...cookie, expires: end } : cookie;
    });
    writers.clear();
    judged = new Set((await browser.cookies()).map(keyOf));
  }

  return {
    async pass(days) {
      await cap();
      const now = Date.now() / 1000;
      await rewrite((cookie) => {
        const expires = cookie.expires - days * DAY_SECONDS;
        return cookie.expires >= 0 && expires > now ? { ...cookie, expires } : undefined;
      });
    },
  };
}
