import { describe, expect, test } from 'vitest';
import { RetryableError } from '../../../base/errors.ts';
import { readProblem, readRetryAfter } from '../../../gitops/clients/acme-errors.ts';
import { type ApiEndpoint, cloudflareError } from '../../../gitops/clients/cloudflare-errors.ts';
import { retryAfterSeconds } from '../../../gitops/clients/cloudflare-transport.ts';
import { CommandError } from '../../../gitops/clients/command.ts';
import { rfc2136Error } from '../../../gitops/clients/rfc2136-errors.ts';

const NOW = Date.parse('2026-11-21T00:00:00Z');

describe('an error answer of Cloudflare', () => {
  const body = (code: number) => ({ success: false, errors: [{ code, message: 'no' }] });

  test.each<[ApiEndpoint, number, number, string]>([
    ['dns', 400, 81044, 'absent'],
    ['dns', 400, 81045, 'quota'],
    ['dns', 400, 81057, 'exists'],
    ['routes', 404, 10009, 'absent'],
    ['routes', 409, 10020, 'exists'],
    ['kv', 404, 10009, 'absent'],
    ['zones', 404, 10009, 'refused'],
    ['dns', 403, 81057, 'exists'],
    ['dns', 403, 81045, 'quota'],
    ['routes', 403, 10073, 'quota'],
    ['dns', 403, 10000, 'unauthorized'],
    ['routes', 401, 10000, 'unauthorized'],
    ['zones', 403, 9109, 'unauthorized'],
  ])('of %s with status %d and code %d means %s', (endpoint, status, code, meaning) => {
    expect(cloudflareError(endpoint, status, body(code), undefined)).toMatchObject({
      meaning,
      codes: [code],
    });
  });

  test.each<[string, number, unknown]>([
    ['a 429', 429, body(1)],
    ['a 500', 500, body(1)],
    ['a 408', 408, body(1)],
    ['an HTML page from a proxy', 403, '<html>'],
    ['a transient code', 400, body(10013)],
    ['a transient code with the status of a refusal', 403, body(10013)],
  ])('is retryable: %s', (_what, status, answer) => {
    expect(cloudflareError('kv', status, answer, 7)).toBeInstanceOf(RetryableError);
  });

  test('has Cloudflare’s own messages, also where it is retryable', () => {
    const errors = [
      { code: 1, message: 'a' },
      { code: 2, message: 'b' },
    ];
    expect(cloudflareError('kv', 503, { success: false, errors }, undefined).message).toBe(
      'Cloudflare kv: answered 503: a (1); b (2)',
    );
    expect(cloudflareError('kv', 503, '<html>', undefined).message).toBe(
      'Cloudflare kv: answered 503 without a usable body',
    );
  });
});

describe('Retry-After', () => {
  test.each([
    ['12', 12],
    ['Sat, 21 Nov 2026 00:01:00 GMT', 60],
    ['Fri, 20 Nov 2026 00:00:00 GMT', 0],
    ['soon', undefined],
    ['', undefined],
  ])('"%s" is %s in seconds', (text, seconds) => {
    expect(retryAfterSeconds(new Headers({ 'retry-after': text }), NOW)).toBe(seconds);
  });

  test.each([
    ['12', NOW + 12_000],
    ['Sat, 21 Nov 2026 00:01:00 GMT', NOW + 60_000],
    ['99999999', NOW + 30 * 86_400_000],
    ['soon', null],
    [undefined, null],
  ])('"%s" is the time %s', (text, at) => {
    expect(readRetryAfter(text, NOW)).toBe(at);
  });
});

test.each([
  [
    { type: 'urn:ietf:params:acme:error:dns', detail: 'a\nb' },
    { type: 'dns', detail: 'a b' },
  ],
  [{ type: 'urn:ietf:params:acme:error:dns' }, { type: 'dns', detail: '' }],
  [{ type: 'about:blank', detail: 'x' }, null],
  ['<html>', null],
  [null, null],
])('the ACME problem in %j is %j', (body, problem) => {
  expect(readProblem(body)).toEqual(problem);
});

test.each([
  [';; status: YXRRSET, id: 1', { code: 'YXRRSET', meaning: 'prerequisite' }],
  [";; ERROR: server replied with error 'NOTAUTH'", { code: 'NOTAUTH', meaning: 'refused' }],
  [';; status: SERVFAIL, id: 1', { name: 'RetryableError' }],
  ['timed out', { name: 'RetryableError' }],
])('the DNS server’s answer “%s” is %j', (stderr, expected) => {
  const failed = new CommandError('knsupdate failed', { exitCode: 1, stdout: '', stderr });
  expect(rfc2136Error(failed)).toMatchObject(expected);
});
