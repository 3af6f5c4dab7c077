import type { z } from 'zod';
import { givenConsent } from '../../gitops/manifest/consent.ts';

/** The rules of consent of a new site or of a change, as far as a request names them. */
export type GivenConsent = {
  readonly [Key in keyof typeof givenConsent]?: z.output<(typeof givenConsent)[Key]>;
};

/** The rules of consent that a request names. */
export function consentOf(
  body: { readonly [Key in keyof GivenConsent]?: GivenConsent[Key] | undefined },
): GivenConsent {
  const keys = Object.keys(givenConsent) as (keyof GivenConsent)[]; // Object.keys forgets the key type
  return Object.fromEntries(keys.filter((key) => body[key] !== undefined).map((key) => [key, body[key]]));
}
