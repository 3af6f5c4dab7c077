import { deepEqual } from 'node:assert/strict';
import { z } from 'zod';
import type { CloudflareTarget } from './target.ts';

const body = z.object({
  success: z.boolean(),
  errors: z.array(z.object({ code: z.number() })),
  result: z.unknown(),
});
const identified = z.object({ id: z.string() });

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Of the errors. */
  readonly codes: readonly number[];
  readonly result: unknown;
  /** The id of the result; empty where there is none. */
  readonly id: string;
}

/** A call of the API. `authorization`: the header instead of that with the target’s token. */
export async function call(
  target: CloudflareTarget,
  [method, path, sent]: readonly [method: string, path: string, sent?: object],
  { authorization = `Bearer ${target.token}` }: { authorization?: string } = {},
): Promise<Answer> {
  const response = await fetch(`${target.url}${path}`, {
    method,
    headers: { authorization, 'content-type': 'application/json' },
    ...(sent === undefined ? {} : { body: JSON.stringify(sent) }),
  });
  const { errors, result } = body.parse(await response.json());
  return {
    status: response.status,
    headers: response.headers,
    codes: errors.map(({ code }) => code),
    result,
    id: identified.safeParse(result).data?.id ?? '',
  };
}

/** Checks status and error code of a refusal. */
export function refused({ status, codes }: Answer, expected: readonly [status: number, code: number]): void {
  deepEqual([status, codes[0]], expected);
}

export const recordsOf = ({ zone }: CloudflareTarget): string => `/zones/${zone.id}/dns_records`;
export const routesOf = ({ zone }: CloudflareTarget): string => `/zones/${zone.id}/workers/routes`;
/** A name of the run's own. */
export const nameOf = ({ prefix, zone }: CloudflareTarget, label: string): string =>
  `${label}.${prefix}.${zone.name}`;
