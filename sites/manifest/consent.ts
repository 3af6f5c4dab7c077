import { z } from 'zod';
import { CONSENT_MODES, type ConsentSettings, FALLBACKS, LOADING_MODES } from '../../plugins/document.ts';

/** The greatest `consentMaxDays`, and its default: 13 months. */
const MAX_DAYS = 395;

const place = z
  .string()
  .regex(/^[A-Z]{2}(?:-[A-Z0-9]{1,3})?$/, 'must be a country or a part of one by ISO 3166, like DE or US-CA');

const region = z.strictObject({
  places: z.array(place).min(1).max(300),
  consent: z.enum(CONSENT_MODES).optional(),
  consentMode: z.enum(LOADING_MODES).optional(),
  fallback: z.enum(FALLBACKS).optional(),
});

const regions = z
  .array(region)
  .max(20)
  .superRefine((all, context) => {
    const seen = new Set<string>();
    for (const [index, { places }] of all.entries()) {
      for (const [at, name] of places.entries()) {
        if (seen.has(name)) {
          const message = `place ${name} is listed twice`;
          context.addIssue({ code: 'custom', path: [index, 'places', at], message });
        }
        seen.add(name);
      }
    }
  });

/** The rules of consent of a site (docs/consent.md), as a request gives them. */
export const givenConsent = {
  consent: z.enum(CONSENT_MODES).meta({
    description: '`opt_out`: visitors are identified unless they refuse; `required`: only after a grant',
  }),
  consentMode: z.enum(LOADING_MODES).meta({
    description: '`basic`: no tag loads before a grant; `advanced`: tags load and act by Consent Mode',
  }),
  fallback: z.enum(FALLBACKS).meta({
    description: '`vendor`: pages load the vendor’s script directly while the edge fails; `none`: no tag',
  }),
  regions: regions.meta({
    description: 'the whole list of places with other rules; a visitor of unknown place gets the strictest',
  }),
  consentMaxDays: z.int().min(1).max(MAX_DAYS).meta({
    description: 'a consent this old counts as none, if the page says when it was given',
  }),
} as const;

/** The same in a manifest. What is left out keeps the meaning that it had before these keys existed. */
export const consentKeys = {
  consent: givenConsent.consent.default('opt_out'),
  consentMode: givenConsent.consentMode.default('advanced'),
  fallback: givenConsent.fallback.default('vendor'),
  regions: givenConsent.regions.default([]),
  consentMaxDays: givenConsent.consentMaxDays.default(MAX_DAYS),
} as const;

type ManifestConsent = { readonly [Key in keyof typeof consentKeys]: z.output<(typeof consentKeys)[Key]> };

const consentSchema = z.object(consentKeys);

/** The rules of consent of a manifest. One that was stored before these keys existed gets their defaults. */
export function consentOfManifest(manifest: Partial<ManifestConsent>): ManifestConsent {
  return consentSchema.parse(manifest);
}

/**
 * Whether the rules of any place forbid a page to load the vendor's script without the edge. Then no page may: a
 * snippet can't know the visitor's place.
 */
export function mayForbidVendor({ regions: differing, ...own }: ManifestConsent): boolean {
  return [own, ...differing].some(
    ({ consentMode, fallback }) => consentMode === 'basic' || fallback === 'none',
  );
}

/**
 * The rules for the edge's documents. Defaults, except that of `consent`, are left out, so that the documents of sites
 * with nothing but defaults stay as they were.
 */
export function consentDocument(manifest: ManifestConsent): ConsentSettings {
  const { consent, consentMode, fallback, regions: differing, consentMaxDays } = manifest;
  return {
    consent,
    ...(consentMode === 'advanced' ? {} : { consentMode }),
    ...(fallback === 'vendor' ? {} : { fallback }),
    ...(differing.length === 0 ? {} : { regions: differing }),
    ...(consentMaxDays === MAX_DAYS ? {} : { consentMaxDays }),
  };
}

/**
 * Where visitors are identified before they choose, as text for a person: `everywhere but in DE, US (except US-CA)`;
 * `null`: nowhere.
 */
export function identifiedPlaces({
  regions: differing,
  consent,
  consentMode,
}: ManifestConsent): string | null {
  const identifies = (rules: Pick<z.output<typeof region>, 'consent' | 'consentMode'>) =>
    (rules.consent ?? consent) === 'opt_out' && (rules.consentMode ?? consentMode) === 'advanced';
  const isUsual = identifies({});
  const byPlace = new Map(
    differing.flatMap((rules) => rules.places.map((name) => [name, identifies(rules)] as const)),
  );
  // The rules for a part of a country replace those for the country.
  const differs = (part: string) => byPlace.get(part) !== (byPlace.get(countryOf(part)) ?? isUsual);
  const others = [...byPlace].flatMap(([name, value]) => {
    if (value === isUsual || (name !== countryOf(name) && !differs(name))) return [];
    const parts = [...byPlace.keys()].filter((part) => part.startsWith(`${name}-`) && differs(part));
    return [parts.length === 0 ? name : `${name} (except ${parts.join(', ')})`];
  });
  if (isUsual) return others.length === 0 ? 'everywhere' : `everywhere but in ${others.join(', ')}`;
  return others.length === 0 ? null : `in ${others.join(', ')}`;
}

const countryOf = (name: string): string => name.slice(0, 2);
