import { type Stage, type StagedSite, startStage } from '../edge/stage.ts';
import { vendorScript } from '../edge/upstream.ts';

/** When a page sent a request: milliseconds after the program of visits began. */
export interface Sent {
  readonly at: number;
}

/** What a program of visits costs at the stores, and when its requests were sent. */
export interface Counted {
  readonly requests: readonly Sent[];
  readonly reads: number;
  readonly writes: number;
  /** Writes and deletes of visits by bots. */
  readonly botWrites: number;
}

type Kind = 'new' | 'returning' | 'bot';

/** Twenty visits, evenly spread: 1/50 of a day with 1,000 visits. */
export const PROGRAM: readonly Kind[] = Array.from({ length: 20 }, (_, index) =>
  index % 10 === 9 ? 'bot' : index % 10 < 3 ? 'returning' : 'new',
);
const BETWEEN_VISITS_MS = 86_400;
/** When the views of a visit begin; a bot has the first one only. */
const VIEWS_MS = [0, 20_000, 40_000];
/** Milliseconds from the start of a view to each of its requests. */
const AT_MS = { loader: 0, boot: 200, script: 400, report: 1500 };
const BOT = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)';
const BROWSER =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';

/** A browser with its cookies. */
interface Visitor {
  readonly agent: string;
  fpid?: string;
  session?: string;
  /** The tag's own cookies: an id, and a counter that changes with each view. */
  cookies: Record<string, string>;
}

/** Runs the program against the edge worker, with cookie restoration on, and counts. */
export async function countVisits(): Promise<Counted> {
  const stage = await startStage();
  try {
    stage.upstream.reply = ({ url }) => (url.includes('/gtm.js') ? vendorScript() : {});
    const site = await stage.site({ features: { cookie_restoration: true } });
    const page = new Page(stage, site);
    const returning = PROGRAM.flatMap((kind) => (kind === 'returning' ? [newVisitor(BROWSER)] : []));
    for (const visitor of returning) await page.visit(visitor, VIEWS_MS.length);
    await page.wait(86_400_000);
    await stage.seen();

    page.begin();
    let botWrites = 0;
    let [reads, writes] = [0, 0];
    for (const kind of PROGRAM) {
      const visitor = kind === 'returning' ? returning.shift() : undefined;
      const isBot = kind === 'bot';
      const began = page.now;
      await page.visit(visitor ?? newVisitor(isBot ? BOT : BROWSER), isBot ? 1 : VIEWS_MS.length);
      const seen = await stage.seen();
      reads += seen.reads.length;
      writes += seen.writes.length;
      if (isBot) botWrites += seen.writes.length;
      await page.wait(began + BETWEEN_VISITS_MS - page.now);
    }
    return { requests: page.sent, reads, writes, botWrites };
  } finally {
    await stage.close();
  }
}

const newVisitor = (agent: string): Visitor => ({ agent, cookies: {} });

/** What a page with the snippet does, on the stage's clock. */
class Page {
  readonly sent: Sent[] = [];
  now = 0;
  readonly #stage: Stage;
  readonly #site: StagedSite;

  constructor(stage: Stage, site: StagedSite) {
    this.#stage = stage;
    this.#site = site;
  }

  begin(): void {
    this.sent.length = 0;
    this.now = 0;
  }

  async wait(ms: number): Promise<void> {
    await this.#stage.forward(ms);
    this.now += ms;
  }

  async visit(visitor: Visitor, views: number): Promise<void> {
    const began = this.now;
    delete visitor.session;
    for (const [view, at] of VIEWS_MS.slice(0, views).entries()) {
      await this.wait(began + at - this.now);
      await this.#view(visitor, view === 0);
    }
  }

  async #view(visitor: Visitor, isFirst: boolean): Promise<void> {
    const began = this.now;
    const { loader, domains } = this.#site;
    const until = (at: number) => this.wait(began + at - this.now);
    if (isFirst) await this.#get(visitor, `/l/${loader}.js`);
    await until(AT_MS.boot);
    const body = { loader, url: `https://${domains[0]?.domain}/`, ...this.#named(visitor) };
    const { json } = await this.#post(visitor, '/boot', body);
    if (json.profile !== null) visitor.fpid = json.profile.id;
    visitor.session = json.session.token ?? json.session.id;
    await until(AT_MS.script);
    if (isFirst) await this.#get(visitor, `/c/${domains[0]?.token}.js`);
    visitor.cookies = { _ga: visitor.cookies._ga ?? `GA1.1.${began}.1`, _ga_ABC: `GS1.1.${this.now}` };
    await until(AT_MS.report);
    if (!isFirst) return;
    const report = { loader, session: { id: json.session.id }, signals: { adblock: false } };
    await this.#post(visitor, '/mark-session-detection', report);
  }

  #named({ fpid, session, cookies }: Visitor): object {
    return { fpid, session: session === undefined ? undefined : { id: session }, cookies };
  }

  #get({ agent }: Visitor, path: string) {
    this.sent.push({ at: this.now });
    return this.#stage.send(this.#site.host, path, { headers: { 'user-agent': agent } });
  }

  async #post({ agent }: Visitor, path: string, body: object) {
    const origin = `https://${this.#site.domains[0]?.domain}`;
    const headers = { 'user-agent': agent, origin };
    this.sent.push({ at: this.now });
    const options = {
      method: 'POST',
      headers: { ...headers, 'content-type': 'text/plain;charset=UTF-8' },
      body: JSON.stringify(body),
    };
    return this.#stage.send(this.#site.host, path, options);
  }
}
