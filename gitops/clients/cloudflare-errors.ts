import { z } from 'zod';
import { RetryableError, TerminalError } from '../../base/errors.ts';

/** Families of endpoints: the meaning of an error code depends on the family. */
export type ApiEndpoint =
  | 'ips'
  | 'zones'
  | 'dns'
  | 'routes'
  | 'domains'
  | 'scripts'
  | 'kv'
  | 'buckets'
  | 'queues';

/** What a refusal means to an applier; `refused`: an operator must change something. */
type CloudflareMeaning = 'absent' | 'exists' | 'quota' | 'transient' | 'unauthorized' | 'refused';

/** Sources: Workers error codes; certbot and ddns clients for DNS. No complete list exists. */
const MEANINGS: Record<ApiEndpoint, Readonly<Record<number, CloudflareMeaning>>> = {
  ips: {},
  zones: {},
  dns: { 81044: 'absent', 81045: 'quota', 81053: 'exists', 81057: 'exists', 81058: 'exists' },
  routes: { 10009: 'absent', 10013: 'transient', 10020: 'exists', 10073: 'quota' },
  domains: { 10013: 'transient' },
  scripts: { 10007: 'absent', 10013: 'transient' },
  kv: { 10009: 'absent', 10013: 'transient' },
  buckets: {},
  queues: {},
};

/** Cloudflare refused the call. `codes` are as sent; the first one determines `meaning`. */
export class CloudflareRefusal extends TerminalError {
  override name = 'CloudflareRefusal';
  readonly endpoint: ApiEndpoint;
  readonly status: number;
  readonly codes: readonly number[];
  readonly meaning: CloudflareMeaning;
  constructor(
    endpoint: ApiEndpoint,
    status: number,
    errors: readonly ApiMessage[],
    meaning: CloudflareMeaning,
  ) {
    super(`Cloudflare ${endpoint}: ${errors.map(({ code, message }) => `${message} (${code})`).join('; ')}`);
    this.endpoint = endpoint;
    this.status = status;
    this.codes = errors.map(({ code }) => code);
    this.meaning = meaning;
  }
}

const apiMessage = z.object({ code: z.number(), message: z.string() });
type ApiMessage = z.infer<typeof apiMessage>;
const refusalBody = z.object({ success: z.literal(false), errors: z.array(apiMessage).min(1) });

/**
 * The error for an unsuccessful answer. Only a well-formed refusal is final. A proxy's error page, a 408 or a 5xx is
 * transient: Cloudflare may still have carried out a write.
 */
export function cloudflareError(
  endpoint: ApiEndpoint,
  status: number,
  body: unknown,
  retryAfter: number | undefined,
): RetryableError | CloudflareRefusal {
  if (status === 429) return new RetryableError(`Cloudflare ${endpoint}: too many calls`, { retryAfter });
  const parsed = refusalBody.safeParse(body);
  if (status === 408 || status >= 500 || !parsed.success) {
    const why = parsed.success
      ? `: ${parsed.data.errors.map(({ code, message }) => `${message} (${code})`).join('; ')}`
      : ' without a usable body';
    return new RetryableError(`Cloudflare ${endpoint}: answered ${status}${why}`, { retryAfter });
  }
  const { errors } = parsed.data;
  // Codes first: a full zone may answer with the status of a token that lacks a permission.
  const ofStatus = status === 401 || status === 403 ? 'unauthorized' : 'refused';
  const meaning = MEANINGS[endpoint][errors[0]?.code ?? 0] ?? ofStatus;
  if (meaning === 'transient') {
    return new RetryableError(`Cloudflare ${endpoint}: ${errors[0]?.message} (${errors[0]?.code})`);
  }
  return new CloudflareRefusal(endpoint, status, errors, meaning);
}
