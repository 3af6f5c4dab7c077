import { Readable } from 'node:stream';

import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import { percentDecoded } from '../../base/http/percent.ts';

/** A mail server that takes mails for any recipient (submission, RFC 6409). */
export interface MailSettings {
  /** `smtp:` (with STARTTLS where the server offers it) or `smtps:`; with user and password if the server demands them. */
  readonly url: string;
  /** `Tagyard <tagyard@example.net>`, or an address alone. */
  readonly from: string;
}

interface Mail {
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
}

/** The outcome of a mail. `unclear`: the connection broke before the server answered, so the server may have accepted it. */
type MailOutcome =
  | { readonly state: 'accepted'; readonly error: string | null }
  | { readonly state: 'refused' | 'unclear'; readonly error: string };

const TIMEOUTS = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 30_000 };
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[?::1\]?)$/;

/** Hands mails to a mail server, each by a connection of its own. */
export class MailClient {
  readonly #from: string;
  readonly #options: SMTPConnection.Options;
  readonly #login: SMTPConnection.Credentials | null;

  constructor({ url, from }: MailSettings) {
    const { protocol, hostname, port, username, password } = new URL(url);
    const secure = protocol === 'smtps:';
    this.#from = from;
    this.#login = username === '' ? null : { user: percentDecoded(username), pass: percentDecoded(password) };
    this.#options = {
      ...TIMEOUTS,
      host: hostname.replace(/^\[|\]$/g, ''),
      port: port === '' ? (secure ? 465 : 587) : Number(port),
      secure,
      // A password is never sent in the clear over a network.
      requireTLS: this.#login !== null && !LOOPBACK.test(hostname),
    };
  }

  /**
   * Never throws because of the server or the network. `error` of an accepted mail: the recipients that were refused.
   */
  async send({ to, subject, text }: Mail): Promise<MailOutcome> {
    // Only installations with a mail server load the library.
    const [{ default: MailComposer }, { default: Connection }] = await Promise.all([
      import('nodemailer/lib/mail-composer'),
      import('nodemailer/lib/smtp-connection'),
    ]);
    const headers = { 'auto-submitted': 'auto-generated' };
    const mail = new MailComposer({ from: this.#from, to: [...to], subject, text, headers }).compile();
    const content = await mail.build();
    const connection = new Connection(this.#options);
    // The connection reads the content only once the server has asked for it.
    let isContentSent = false;
    const body = Readable.from(
      (function* () {
        isContentSent = true;
        yield content;
      })(),
    );
    const broken = new Promise<never>((_, reject) => connection.on('error', reject));
    broken.catch(() => undefined);
    const step = <Result>(run: (done: (error: unknown, result: Result) => void) => void): Promise<Result> =>
      Promise.race([
        broken,
        new Promise<Result>((resolve, reject) =>
          run((error, result) => (error ? reject(error) : resolve(result))),
        ),
      ]);
    try {
      await step<void>((done) => connection.connect((error) => done(error)));
      const credentials = this.#login;
      if (credentials !== null) {
        await step<void>((done) => connection.login({ credentials }, (error) => done(error)));
      }
      const envelope = mail.getEnvelope();
      const { rejected } = await step<SMTPConnection.SentMessageInfo>((done) =>
        connection.send({ from: envelope.from || '', to: envelope.to }, body, done),
      );
      connection.quit();
      const error = rejected.length === 0 ? null : `the mail server refused ${rejected.join(', ')}`;
      return { state: 'accepted', error };
    } catch (error) {
      connection.close();
      const isAnswered =
        error instanceof Error && 'responseCode' in error && error.responseCode !== undefined;
      const reason = error instanceof Error ? error.message : String(error);
      return { state: isContentSent && !isAnswered ? 'unclear' : 'refused', error: reason.slice(0, 500) };
    }
  }
}
