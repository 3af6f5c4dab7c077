import { z } from 'zod';

interface AnalyticsOptions {
  /** Base URL with its version, `https://api.cloudflare.com/client/v4` in production. */
  readonly url: string;
  /** Needs `Account Analytics: Read`. */
  readonly token: string;
  /** Absent: the only account that the token can read. */
  readonly accountId?: string | undefined;
  readonly dataset: string;
  /** The maximum duration of one call, in milliseconds. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 15_000;
const MOST_DETAIL = 300;
const accounts = z.object({ result: z.array(z.object({ id: z.string() })).length(1) });
const answer = z.object({ data: z.array(z.record(z.string(), z.unknown())) });
const failure = z.object({ errors: z.array(z.object({ message: z.string() })) });

/** A query of Analytics Engine has failed. The message says why. */
export class AnalyticsError extends Error {
  override name = 'AnalyticsError';
  /** `retry-after` of an answer. */
  readonly retryAfter: string | null;
  constructor(
    message: string,
    { retryAfter = null, ...options }: ErrorOptions & { retryAfter?: string | null } = {},
  ) {
    super(message, options);
    this.retryAfter = retryAfter;
  }
}

/** Queries one dataset by Analytics Engine's SQL API. */
export class AnalyticsClient {
  readonly dataset: string;
  readonly #options: AnalyticsOptions;
  #account: string | undefined;

  constructor(options: AnalyticsOptions) {
    this.#options = options;
    this.#account = options.accountId;
    this.dataset = options.dataset;
  }

  /** The rows of the answer; numbers of 64 bits are texts. Throws `AnalyticsError`. */
  async query(sql: string): Promise<Record<string, unknown>[]> {
    this.#account ??= accounts.safeParse(
      await this.#call('/accounts', { method: 'GET' }),
    ).data?.result[0]?.id;
    if (this.#account === undefined) {
      throw new AnalyticsError(
        'the token of Analytics Engine reads several accounts or none: set ANALYTICS_ENGINE_ACCOUNT_ID',
      );
    }
    const path = `/accounts/${this.#account}/analytics_engine/sql`;
    const rows = answer.safeParse(
      await this.#call(path, {
        method: 'POST',
        headers: { 'content-type': 'text/plain' },
        body: `${sql} FORMAT JSON`,
      }),
    );
    if (!rows.success) throw new AnalyticsError('Analytics Engine’s answer has no rows');
    return rows.data.data;
  }

  async #call(
    path: string,
    init: { method: string; headers?: Record<string, string>; body?: string },
  ): Promise<unknown> {
    const { url, token, timeoutMs = TIMEOUT_MS } = this.#options;
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${url.replace(/\/$/, '')}${path}`, {
        ...init,
        headers: { ...init.headers, authorization: `Bearer ${token}` },
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      });
      text = await response.text();
    } catch (cause) {
      throw new AnalyticsError('Cloudflare’s API doesn’t answer', { cause });
    }
    if (!response.ok) throw refused(response, text);
    return parsed(text);
  }
}

function refused({ status, headers }: Response, text: string): AnalyticsError {
  const said = failure.safeParse(parsed(text)).data?.errors[0]?.message ?? text.slice(0, MOST_DETAIL);
  const retryAfter = headers.get('retry-after');
  if (status === 401 || status === 403) {
    return new AnalyticsError(
      `Cloudflare refuses the token of Analytics Engine (${status} ${said}): ANALYTICS_ENGINE_API_TOKEN needs “Account Analytics: Read” of ANALYTICS_ENGINE_ACCOUNT_ID`,
    );
  }
  if (status === 429)
    return new AnalyticsError(`Cloudflare’s API allows no more calls now (${said})`, { retryAfter });
  return new AnalyticsError(`Cloudflare answered the query with ${status}: ${said}`, { retryAfter });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
