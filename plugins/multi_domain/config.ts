import * as z from 'zod/mini';

export const config = z.strictObject({
  enabled: z._default(z.boolean(), true),
});

/** Whether the edge serves the domain at `index` of a site's list: the first one always, others only with multi_domain. */
export const isActiveDomain = (index: number, multiDomain: boolean): boolean => index === 0 || multiDomain;
