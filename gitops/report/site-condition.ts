import { z } from 'zod';

/** What a site's status says besides its reason. No such condition keeps the site from being ready. */
export const siteConditionSchema = z.object({
  condition: z.enum(['quota_near', 'quota_reached', 'preview_failed']),
  message: z.string(),
});
export type SiteCondition = z.infer<typeof siteConditionSchema>;

/** The conditions that concern the site itself, and not the limits of the provider. */
export function faultsIn<Condition extends { readonly condition: string }>(
  conditions: readonly Condition[],
): Condition[] {
  return conditions.filter(({ condition }) => condition !== 'quota_near' && condition !== 'quota_reached');
}
