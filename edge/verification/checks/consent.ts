import type { CheckContext } from '../check.ts';
import { passed, skipped } from '../result.ts';

/** The law of the visitor's country decides whether identifying before a choice is a fault, so this never fails. */
export function checkConsent({ site: { identifies } }: CheckContext) {
  if (identifies === undefined) return [skipped(null, 'the host doesn’t state the rules of consent')];
  if (identifies === null) return [passed(null, 'no visitor is identified before a choice')];
  return [
    passed(
      null,
      `visitors are identified before they choose: ${identifies}`,
      'Where the law asks for consent (EEA, United Kingdom, Switzerland), set consent: required and consentMode: basic, for the site or for those places under regions.',
    ),
  ];
}
