import assert from 'node:assert/strict';
import { z } from 'zod';

export interface CloudflareTarget {
  /** The API's base URL. */
  readonly url: string;
  readonly token: string;
  readonly zone: { readonly id: string; readonly name: string };
  readonly account: string;
  /** Every name that a behaviour uses must contain it. */
  readonly prefix: string;
  /** Resolves after this time, by the clock of the API. */
  readonly sleep: (ms: number) => Promise<void>;
}

const body = z.looseObject({
  success: z.boolean(),
  errors: z.array(z.looseObject({ code: z.number(), message: z.string() })),
  result: z.unknown(),
  result_info: z.looseObject({}).nullish(),
});
const identified = z.object({ id: z.string() });

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** `null`: the answer isn't JSON in the API's envelope. */
  readonly json: z.infer<typeof body> | null;
}

/** One call. An object is sent as JSON, a text as octets, a form as it is. */
export async function call(
  { url, token }: CloudflareTarget,
  method: string,
  path: string,
  sent?: object | string,
): Promise<Answer> {
  const isJson = typeof sent === 'object' && !(sent instanceof FormData);
  const type = isJson ? 'application/json' : 'application/octet-stream';
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(sent === undefined || sent instanceof FormData ? {} : { 'content-type': type }),
    },
    ...(sent === undefined ? {} : { body: isJson ? JSON.stringify(sent) : (sent as string | FormData) }), // not JSON, so one of these
  });
  const text = await response.text();
  const isObject = response.headers.get('content-type')?.includes('json') === true;
  const parsed = isObject ? body.safeParse(JSON.parse(text)) : null;
  return { status: response.status, headers: response.headers, text, json: parsed?.data ?? null };
}

/** The result of a call that must succeed. */
export async function succeed(...args: Parameters<typeof call>): Promise<unknown> {
  const { status, text, json } = await call(...args);
  assert.equal(status, 200, `${args[1]} ${args[2]}: ${status} ${text}`);
  return json?.result;
}

export async function createdId(...args: Parameters<typeof call>): Promise<string> {
  return identified.parse(await succeed(...args)).id;
}

/** Throws unless the call was refused with that status and code. */
export function assertRefused({ status, json, text }: Answer, expected: number, code: number): void {
  assert.equal(`${status} ${json?.errors[0]?.code}`, `${expected} ${code}`, text);
  assert.equal(json?.success, false);
}
