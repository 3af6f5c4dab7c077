import { createHmac } from 'node:crypto';
import type { Agent } from 'undici';
import { type AddressRules, checkedLookup, refuseAddress } from './public-address.ts';

/** Milliseconds for one call, the resolution of the name included. */
const CALL_MS = 10_000;
/** The most bytes of an answer that are read. */
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
  /** Loaded with the first message. */
  #agent: Promise<Agent> | null = null;

  constructor(rules: AddressRules, callMs = CALL_MS) {
    this.#rules = rules;
    this.#callMs = callMs;
  }

  /** Resolves to the HTTP status. Redirects aren't followed. Throws `AddressError`, or the error of the connection. */
  async send(url: string, message: Message, signal: AbortSignal): Promise<number> {
    refuseAddress(url, this.#rules);
    this.#agent ??= this.#load();
    const agent = await this.#agent;
    const ended = AbortSignal.any([signal, AbortSignal.timeout(this.#callMs)]);
    const { origin, pathname, search } = new URL(url);
    const answer = await agent.request({
      origin,
      path: pathname + search,
      method: 'POST',
      headers: signedHeaders(message),
      body: message.body,
      signal: ended,
    });
    await answer.body.dump({ limit: MOST_READ, signal: ended }).catch(() => undefined);
    return answer.statusCode;
  }

  async close(): Promise<void> {
    await (await this.#agent)?.destroy();
  }

  async #load(): Promise<Agent> {
    const { Agent } = await import('undici');
    // A connection stays with the address that was checked when it was opened.
    return new Agent({
      connect: { lookup: checkedLookup(this.#rules), timeout: this.#callMs },
      keepAliveTimeout: 4_000,
    });
  }
}
