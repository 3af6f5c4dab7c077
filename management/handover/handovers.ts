import { backoffMs } from '../../base/backoff.ts';
import { limit } from '../../base/limit.ts';
import { MailClient } from '../clients/mail-client.ts';
import type { Context } from '../context/context.ts';
import { TriggeredLoop } from '../context/repeat.ts';
import { AskedHosts } from '../domains/asked-hosts.ts';
import {
  completeLink,
  type LinkRow,
  markUnclear,
  pruneLinks,
  recordMail,
  takeDueLinks,
  takeMail,
} from './links.repository.ts';
import { handoverMail } from './message.ts';
import { areComplete, type HandoverRecord, HandoverRecords, isWithin } from './records.ts';

/** The pause between two searches for links and mails that are due. */
const SEARCH_MS = 5_000;
const MOST = 50;
/** Links that are checked concurrently. */
const WIDTH = 4;
const RETRIES = { firstMs: 30_000, longestMs: 3_600_000 };
const DAY_MS = 86_400_000;
/** A mail that no server has taken for this long is given up. */
const GIVEN_UP_MS = 3 * DAY_MS;
/** No attempt takes longer: one that is older was cut short. */
const LONGEST_MS = 600_000;
/** How long expired links are kept. */
const EXPIRED_MS = 30 * DAY_MS;

/** Notes when all records of a link are right, and sends one mail then. All state is in the database. */
export class Handovers {
  readonly #context: Context;
  readonly #records: HandoverRecords;
  readonly #mail: MailClient | null;
  readonly #loop: TriggeredLoop;

  constructor(context: Context) {
    this.#context = context;
    this.#loop = new TriggeredLoop(context.clock);
    this.#records = new HandoverRecords(context, new AskedHosts(context));
    this.#mail = context.settings.mail === null ? null : new MailClient(context.settings.mail);
  }

  /** Whether this installation has a mail server. */
  get sendsMail(): boolean {
    return this.#mail !== null;
  }

  /** The registrable domains of the pages of a link's containers: its mail goes to addresses in these only. */
  async zones(scope: Pick<LinkRow, 'client_id' | 'container_id'>): Promise<string[]> {
    return await this.#records.zones(scope);
  }

  /** The records of a link. `isFresh`: the resolvers are asked now, unless they were just before. */
  async read(link: LinkRow, isFresh: boolean, requestId: string): Promise<HandoverRecord[]> {
    const records = isFresh
      ? await this.#records.check(link, requestId)
      : await this.#records.read(link, requestId);
    await this.#note(link, records);
    return records;
  }

  /** Runs until the signal. Resolves when no mail is being sent any more. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#context;
    await this.#loop.run(signal, async () => {
      try {
        await this.#checkDue();
        await this.#sendDue(signal);
      } catch (err) {
        log.error({ err }, 'checking the links to DNS records, or sending their mails, failed');
      }
      return SEARCH_MS;
    });
  }

  async #checkDue(): Promise<void> {
    const { db, clock, log } = this.#context;
    const now = clock.date();
    await pruneLinks(db, new Date(now.getTime() - EXPIRED_MS));
    await limit(WIDTH).map(await takeDueLinks(db, { now, most: MOST }), async (link) => {
      await this.#records
        .read(link)
        .then((records) => this.#note(link, records))
        .catch((err: unknown) => log.error({ err, link: link.id }, 'a link’s records could not be checked'));
    });
  }

  async #note(link: LinkRow, records: readonly HandoverRecord[]): Promise<void> {
    const { db, clock } = this.#context;
    if (link.complete_at !== null || !areComplete(records)) return;
    if (await completeLink(db, link.id, clock.date())) this.#loop.trigger();
  }

  async #sendDue(signal: AbortSignal): Promise<void> {
    const { db, clock } = this.#context;
    await markUnclear(db, new Date(clock.date().getTime() - LONGEST_MS));
    while (this.#mail !== null && !signal.aborted) {
      const link = await takeMail(db, clock.date());
      if (link === undefined) return;
      await this.#send(this.#mail, link);
    }
  }

  async #send(mail: MailClient, link: LinkRow): Promise<void> {
    const { db, clock, log } = this.#context;
    const records = await this.#records.read(link).catch(() => []);
    // What was proven when the link was made, or when its records were right, may have changed.
    const zones = await this.#records.zones(link, { isProven: true });
    const to = link.recipients.filter((address) => isWithin(address, zones));
    const { state, error } =
      to.length === 0
        ? {
            state: 'nobody' as const,
            error: 'no recipient is in a domain that is proven to be the client’s',
          }
        : await mail.send({ to, ...handoverMail(records) });
    const now = clock.date().getTime();
    const isOver =
      state === 'nobody' || link.complete_at === null || now - link.complete_at.getTime() > GIVEN_UP_MS;
    const retryMs = backoffMs(link.mail_attempts, Math.random, RETRIES);
    if (error !== null) log.warn({ link: link.id, state, error }, 'a mail about DNS records had a problem');
    await recordMail(db, link.id, {
      mail: state === 'accepted' ? 'sent' : state === 'unclear' ? state : isOver ? 'failed' : 'due',
      mail_at: new Date(now + (state === 'refused' ? retryMs : 0)),
      mail_error: error,
    });
  }
}
