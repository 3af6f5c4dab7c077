import type { z } from 'zod';
import { RetryableError } from '../../base/errors.ts';
import { type ApiEndpoint, cloudflareError } from './cloudflare-errors.ts';
import { retryAfterSeconds } from './cloudflare-transport.ts';

/** A running call of openapi-fetch. */
export type ApiCall = Promise<{ data?: unknown; error?: unknown; response: Response }>;

/** The parsed body of the answer to a call. Throws the error that the answer reports. */
export async function parsedAnswer<Schema extends z.ZodType>({
  endpoint,
  schema,
  call,
  now,
}: {
  endpoint: ApiEndpoint;
  schema: Schema;
  call: ApiCall;
  /** Milliseconds since 1970. */
  now: () => number;
}): Promise<z.output<Schema>> {
  const { data, error, response } = await call.catch((cause: unknown) => {
    if (cause instanceof RetryableError) throw cause;
    throw new RetryableError(`Cloudflare ${endpoint}: the answer isn't JSON`, { cause });
  });
  if (!response.ok) {
    throw cloudflareError(endpoint, response.status, error, retryAfterSeconds(response.headers, now()));
  }
  const parsed = schema.safeParse(data);
  if (!parsed.success) {
    throw new RetryableError(`Cloudflare ${endpoint}: the answer has another shape`, { cause: parsed.error });
  }
  return parsed.data;
}
