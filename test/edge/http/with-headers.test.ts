import { expect, test } from 'vitest';
import { withHeaders } from '../../../edge/http/with-headers.ts';

test('changes the response itself, or a copy if its headers are immutable', () => {
  const response = new Response('text');
  expect(withHeaders(response, (headers) => headers.set('x', '1'))).toBe(response);
  expect(response.headers.get('x')).toBe('1');

  const immutable = Response.redirect('https://shop.example/', 303);
  const copy = withHeaders(immutable, (headers) => headers.set('x', '1'));
  expect([copy.status, copy.headers.get('x'), immutable.headers.get('x')]).toEqual([303, '1', null]);
});

test('throws the error of a change that fails for another reason', () => {
  const change = (headers: Headers) => headers.set('x', 'a\nb');
  expect(() => withHeaders(new Response('text'), change)).toThrow(TypeError);
});
