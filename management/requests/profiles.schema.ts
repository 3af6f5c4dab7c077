import { z } from 'zod';
import { givenConsent } from '../../sites/manifest/consent.ts';
import { containerParams } from '../view/container-view.ts';

export const profileParams = containerParams.extend({
  fpid: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .meta({ description: 'the value of the visitor’s cookie `_fpid`' }),
});

const keptCookie = z.object({
  name: z.string(),
  value: z.string(),
  purpose: z
    .enum(['analytics', 'ads', 'both'])
    .meta({ description: 'the cookie is kept only while the visitor’s consent allows this purpose' }),
  setAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
});

export const profileView = z
  .object({
    profile: z
      .object({
        since: z.iso.datetime().nullable().meta({ description: 'null: not recorded' }),
        lastSeenAt: z.iso.datetime().nullable(),
        cookies: z.array(keptCookie),
      })
      .nullable()
      .meta({ description: 'null: nothing is kept of the visitor' }),
    consent: z.object(givenConsent).meta({
      description: 'the container’s rules of consent, which apply where the visitor has not chosen',
    }),
  })
  .meta({ id: 'VisitorProfile' });

export const profileErased = z.object({
  erased: z.boolean().meta({ description: 'false: nothing was kept' }),
  erasedBy: z.iso
    .datetime()
    .meta({ description: 'from this time on, no data centre of Cloudflare’s has a copy' }),
});
export const profilePlan = z.object({
  plan: z.object({ cookies: z.array(z.string()).meta({ description: 'names of what would be erased' }) }),
});
