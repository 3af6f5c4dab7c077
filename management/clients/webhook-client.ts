import { createHmac } from 'node:crypto';
import { Agent, request } from 'undici';
import { type AddressRules, checkedLookup, refuseAddress } from './public-address.ts';

/** Milliseconds for one call, the resolution of the name included. */
const CALL_MS = 10_000;
/** Bytes of an answer that are read at most. */
const MOST_READ = 16 * 1024;

interface Message {
  readonly id: string;
  readonly at: Date;
  readonly body: string;
  /** `whsec_…`: the current one, and the previous one during a rotation. */
  readonly secrets: readonly string[];
}

/** The headers of a message (Standard Webhooks 1.0): one signature for each secret. */
function signedHeaders({ id, at, body, secrets }: Message): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1000));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return {
    'content-type': 'application/json',
    'user-agent': 'Tagyard-Webhooks',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  };
}

/** Sends messages to addresses that tenants name. */
export class WebhookClient {
  readonly #rules: AddressRules;
  readonly #callMs: number;
  readonly #agent: Agent;

  constructor(rules: AddressRules, callMs = CALL_MS) {
    this.#rules = rules;
    this.#callMs = callMs;
    // A connection stays with the address that was checked when it was opened.
    this.#agent = new Agent({
      connect: { lookup: checkedLookup(rules), timeout: callMs },
      keepAliveTimeout: 4_000,
    });
  }

  /** Resolves to the HTTP status. Redirects aren't followed. Throws `AddressError`, or the error of the connection. */
  async send(url: string, message: Message, signal: AbortSignal): Promise<number> {
    refuseAddress(url, this.#rules);
    const ended = AbortSignal.any([signal, AbortSignal.timeout(this.#callMs)]);
    const answer = await request(url, {
      method: 'POST',
      headers: signedHeaders(message),
      body: message.body,
      dispatcher: this.#agent,
      signal: ended,
    });
    await answer.body.dump({ limit: MOST_READ, signal: ended }).catch(() => undefined);
    return answer.statusCode;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}
