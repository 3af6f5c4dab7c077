/** The reasons for which a plan's changes are held until it is approved. An approval lifts no others. */
export const APPROVABLE_HOLDS = [
  'empty_desired_state',
  'too_many_sites',
  'too_many_records',
  'history_rewritten',
  'absence_unconfirmed',
  'not_taken_over',
] as const;
