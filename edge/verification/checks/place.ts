import type { CheckContext } from '../check.ts';
import type { Visit } from '../visit.ts';

/** ISO 3166-1 keeps `QZ` for its users: no visitor is there. */
const NOWHERE = 'QZ';
const CLAIM = { 'x-tagyard-country': NOWHERE, 'x-tagyard-region': NOWHERE };

/** How the countries of one visitor compare whom the edge sees on its own hostname and through a forwarder. */
interface Comparison {
  /** What the forwarder states, as far as nothing contradicts it; `null`: unknown. */
  readonly country: string | null;
  readonly isDifferent: boolean;
  readonly remark: string | null;
  readonly advice: string | null;
}

const loaderUrl = ({ site }: CheckContext, base: string) => new URL(`${base}/l/${site.loaderToken}.js`);

/** `DE` or `US-CA`, as the loader names the visitor's place; `null`: it names none. */
function placeOf({ text }: Visit): string | null {
  return /\bplace:"([A-Z]{2}(?:-[A-Z0-9]{1,3})?)"/.exec(text)?.[1] ?? null;
}

/** True if the edge believes a place that the visitor claims in the forwarder's headers. */
export async function passesClaimedPlace(context: CheckContext, base: string): Promise<boolean> {
  const answer = await context.visit(loaderUrl(context, base), { headers: CLAIM });
  return placeOf(answer)?.split('-').includes(NOWHERE) ?? false;
}

export async function comparePlaces(context: CheckContext, base: string): Promise<Comparison> {
  const bases = [new URL(context.site.edge).origin, base];
  const answers = await Promise.all(bases.map((each) => context.visit(loaderUrl(context, each))));
  const [own = null, stated = null] = answers.map((answer) => placeOf(answer)?.slice(0, 2) ?? null);
  if (stated === null) {
    return {
      country: null,
      isDifferent: false,
      remark: 'the visitor’s country is unknown there',
      advice:
        'If the domain’s server knows the visitor’s country, let it state the code in x-tagyard-country. Otherwise rules for regions take its visitors to be in an unknown place.',
    };
  }
  if (own === null || own === stated) {
    return { country: stated, isDifferent: false, remark: null, advice: null };
  }
  return {
    country: null,
    isDifferent: true,
    remark: `the visitor arrives from ${stated}, on the edge hostname from ${own}`,
    advice: 'Check x-tagyard-country with a visitor whose country you know.',
  };
}
