import { expect, test } from 'vitest';
import { httpCookies } from '../../../plugins/cookie_restoration/http-cookies.ts';

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 0, 1);

const expiryOf = (attributes: string) =>
  httpCookies([`FPID=a; HttpOnly${attributes}`], { header: null, now: NOW, endsAt: NOW + 400 * DAY })[0]
    ?.expiresAt;

test.each([
  ['; Max-Age=86400', DAY],
  ['; max-age = 86400', DAY],
  ['; Max-Age =0', 0],
  ['; Expires = Fri, 02 Jan 2026 00:00:00 GMT', DAY],
  ['; Expires=Fri, 02 Jan 2026 00:00:00 GMT; Max-Age=172800', 2 * DAY],
  ['; Max-Age=86400; Max-Age=172800', 2 * DAY],
  ['; Max-Age=soon', 400 * DAY],
  ['; Max-Age=0; Max-Age=soon', 0],
  ['; Expires=0', 400 * DAY],
  ['; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Expires=-1', Date.UTC(1970, 0) - NOW],
  ['', 400 * DAY],
])(
  'a cookie with the attributes `%s` ends when browsers end it, at most with the identity',
  (given, life) => {
    expect(expiryOf(given)).toBe(NOW + life);
  },
);

test('spaces around the = of a cookie don’t count, as in browsers', () => {
  const [cookie] = httpCookies(['FPID = a; HttpOnly'], { header: null, now: NOW, endsAt: NOW + DAY });
  expect(cookie).toMatchObject({ name: 'FPID', value: 'a' });
});

test.each(['FPLCx', '=FPLC', 'FPLC'])('the cookie without a name in `%s` is not kept', (line) => {
  expect(httpCookies([line], { header: null, now: NOW, endsAt: NOW + DAY })).toEqual([]);
});
