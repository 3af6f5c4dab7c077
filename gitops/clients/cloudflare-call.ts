import type { z } from 'zod';
import { RetryableError } from '../base/errors.ts';
import { type ApiEndpoint, cloudflareError } from './cloudflare-errors.ts';
import { retryAfterSeconds } from './cloudflare-transport.ts';

/** The parsed body of a call, or the error that its answer stands for. */
export async function answer<Schema extends z.ZodType>(
  endpoint: ApiEndpoint,
  schema: Schema,
  call: Promise<{ data?: unknown; error?: unknown; response: Response }>,
): Promise<z.output<Schema>> {
  const { data, error, response } = await call.catch((cause: unknown) => {
    if (cause instanceof RetryableError) throw cause;
    throw new RetryableError(`Cloudflare ${endpoint}: the answer isn't JSON`, { cause });
  });
  if (!response.ok) {
    throw cloudflareError(endpoint, response.status, error, retryAfterSeconds(response.headers, Date.now()));
  }
  const parsed = schema.safeParse(data);
  if (!parsed.success) {
    throw new RetryableError(`Cloudflare ${endpoint}: the answer has another shape`, { cause: parsed.error });
  }
  return parsed.data;
}
