import { expect, test } from 'vitest';
import { z } from 'zod';
import { fieldErrors, ProblemError } from '../../../../gitops/base/http/problem.ts';

const TABLE = { not_found: [404, 'There is nothing at this address'] } as const;

test('the body of a problem has the title of its code', () => {
  expect(JSON.parse(JSON.stringify(new ProblemError(TABLE, 'not_found').body('r1')))).toEqual({
    type: 'urn:tagyard:problem:not_found',
    title: 'There is nothing at this address',
    status: 404,
    code: 'not_found',
    requestId: 'r1',
  });
});

test('detail, errors and the service’s own members are added, the cause is not', () => {
  const cause = new Error('secret');
  const error = new ProblemError<typeof TABLE, { container?: string }>(TABLE, 'not_found', {
    detail: 'gone',
    errors: [{ path: 'a.0', message: 'is wrong' }],
    container: 'an-id',
    cause,
  });
  expect([error.message, error.status, error.cause]).toEqual(['gone', 404, cause]);
  expect(error.body('r1')).toMatchObject({
    detail: 'gone',
    requestId: 'r1',
    errors: [{ path: 'a.0', message: 'is wrong' }],
    container: 'an-id',
  });
  expect(JSON.stringify(error.body('r1'))).not.toContain('secret');
});

test('issues of zod become dotted paths', () => {
  const result = z.strictObject({ a: z.array(z.string()) }).safeParse({ a: ['x', 1] });
  expect(fieldErrors(result.error?.issues ?? [])).toEqual([
    { path: 'a.1', message: expect.stringContaining('expected string') },
  ]);
});
