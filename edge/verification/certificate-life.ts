/**
 * Whether so little of a certificate's life is left that its renewal must have failed: it is renewed at a third, however
 * short it lives, so less than a quarter is late. Times are texts that `Date` reads; an unknown beginning counts as late.
 *
 * @example
 * isRenewalLate({ notBefore: '2026-01-01T00:00:00Z', notAfter: '2026-01-07T00:00:00Z' }, Date.parse('2026-01-05')); // false
 */
export function isRenewalLate(
  { notBefore, notAfter }: { readonly notBefore?: string | null | undefined; readonly notAfter: string },
  now: number,
): boolean {
  const ends = Date.parse(notAfter);
  return notBefore == null || ends - now < (ends - Date.parse(notBefore)) / 4;
}
