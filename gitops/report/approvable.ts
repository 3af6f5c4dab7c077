/** The reasons for which a plan's changes are held until it is approved. An approval lifts no others. */
export const APPROVABLE_HOLDS = [
  'empty_desired_state',
  'too_many_sites',
  'too_many_records',
  'history_rewritten',
  'absence_unconfirmed',
  'not_taken_over',
] as const;
const APPROVABLE: ReadonlySet<string> = new Set(APPROVABLE_HOLDS);

/** Whether guards hold this change of a plan, so that it waits for an approval, or has one. */
export function isGuarded({ held }: { readonly held: readonly string[] }): boolean {
  return held.some((reason) => APPROVABLE.has(reason));
}
