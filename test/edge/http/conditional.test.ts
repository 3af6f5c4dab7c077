import { describe, expect, test } from 'vitest';
import { answerConditional } from '../../../edge/http/conditional.ts';

const answer = (condition: string | null, etag: string | null, status = 200) => {
  const request = new Request('https://shop.edge.test/', {
    headers: condition === null ? {} : { 'if-none-match': condition },
  });
  const headers = {
    'content-type': 'text/plain',
    'cache-control': 'max-age=1',
    ...(etag !== null && { etag }),
  };
  return answerConditional(request, new Response('body', { status, headers }));
};

describe('answerConditional', () => {
  test.each([
    ['"a"', '"a"'],
    ['*', '"a"'],
    [' * ', '"a"'],
    ['"x", "a"', '"a"'],
    ['W/"a"', '"a"'],
    ['"a"', 'W/"a"'],
  ])('if-none-match: %s and etag %s: 304 without a body', async (condition, etag) => {
    const response = answer(condition, etag);
    expect([response.status, await response.text()]).toEqual([304, '']);
    expect(Object.fromEntries(response.headers)).toEqual({ 'cache-control': 'max-age=1', etag });
  });

  test.each([
    [null, '"a"', 200],
    ['"b"', '"a"', 200],
    ['a', '"a"', 200],
    ['*', null, 200],
    ['"a"', '"a"', 404],
  ])('if-none-match: %s, etag %s, status %i: unchanged', async (condition, etag, status) => {
    const response = answer(condition, etag, status);
    expect([response.status, await response.text()]).toEqual([status, 'body']);
  });
});
