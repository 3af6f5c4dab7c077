import { expect, test } from 'vitest';
import { z } from 'zod';
import { fieldErrors, ProblemError } from '../../../base/http/problem.ts';

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

test('at most 20 fields at fault are listed, with the number of the others', () => {
  const errors = Array.from({ length: 100_000 }, (_, number) => ({
    path: String(number),
    message: 'is wrong',
  }));
  const bodyOf = (count: number) =>
    new ProblemError(TABLE, 'not_found', { errors: errors.slice(0, count) }).body('r1');
  expect(bodyOf(100_000)).toMatchObject({ errors: errors.slice(0, 20), moreErrors: 99_980 });
  expect(bodyOf(21)).toMatchObject({ errors: errors.slice(0, 20), moreErrors: 1 });
  expect(bodyOf(20)).toMatchObject({ errors: errors.slice(0, 20) });
  expect(bodyOf(20)).not.toHaveProperty('moreErrors');
});

test('issues of zod become dotted paths', () => {
  const result = z.strictObject({ a: z.array(z.string()) }).safeParse({ a: ['x', 1] });
  expect(fieldErrors(result.error?.issues ?? [])).toEqual([
    { path: 'a.1', message: expect.stringContaining('expected string') },
  ]);
});
