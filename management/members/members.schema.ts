import { z } from 'zod';
import { givenName } from '../../gitops/manifest/schema.ts';
import { examples } from '../http/examples.ts';

const role = z
  .enum(['owner', 'admin', 'editor', 'viewer', 'reader', 'member'])
  .meta({ description: 'owner and admin may change things; any other role may only read' });

/** Maximum length in characters (OpenID Connect Core 1.0, section 2: `sub`). */
export const LONGEST_SUBJECT = 255;

const subject = z
  .string()
  .min(1)
  .max(LONGEST_SUBJECT)
  .regex(/^[^\p{Cc}\p{Cs}]+$/u, 'must be well-formed Unicode without control characters')
  .refine((text) => text.trim() === text, 'must not start or end with spaces')
  .meta({ description: 'the `sub` claim of the member’s tokens' });

const member = z.strictObject({ subject, role });

export const newClient = z
  .strictObject({
    name: givenName,
    members: z
      .array(member)
      .max(100)
      .default([])
      .check(({ value, issues }) => {
        value.forEach(({ subject: one }, index) => {
          if (value.findIndex(({ subject }) => subject === one) === index) return;
          const message = 'is listed twice';
          issues.push({ code: 'custom', path: [index, 'subject'], message, input: one });
        });
      }),
  })
  .meta(examples({ 'with an owner': { name: 'Acme', members: [{ subject: 'auth0|ada', role: 'owner' }] } }));

export const clientView = z
  .object({ id: z.uuid(), name: z.string(), members: z.array(member) })
  .meta({ id: 'Client' });

export const memberParams = z.strictObject({ id: z.uuid(), subject });
export const memberRole = z.strictObject({ role }).meta(examples({ 'an admin': { role: 'admin' } }));
export const memberView = member.meta({ id: 'Member' });
