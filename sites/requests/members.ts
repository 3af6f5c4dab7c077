import { z } from 'zod';
import { givenId, givenName } from '../manifest/schema.ts';
import { isTokenSubject } from './token-subject.ts';

export const STORED_ROLES = ['owner', 'admin', 'editor', 'viewer', 'reader', 'member'] as const;
export type StoredRole = (typeof STORED_ROLES)[number];

const storedRole = z.enum(STORED_ROLES).meta({
  description:
    'owner may do everything, admin nearly everything, editor only change settings, viewer only read; reader and member mean viewer. Only owners give or take the role owner',
});

/** Maximum length in characters (OpenID Connect Core 1.0, section 2: `sub`). */
export const LONGEST_SUBJECT = 255;

export const memberSubject = z
  .string()
  .min(1)
  .max(LONGEST_SUBJECT)
  .regex(/^[^\p{Cc}\p{Cs}]+$/u, 'must be well-formed Unicode without control characters')
  .refine((text) => text.trim() === text, 'must not start or end with spaces')
  .refine((text) => !isTokenSubject(text), 'is the subject of a service token; make one with POST /tokens')
  .meta({ description: 'the `sub` claim of the member’s tokens' });

export const storedMember = z.strictObject({ subject: memberSubject, role: storedRole });

export const memberList = z
  .array(storedMember)
  .max(100)
  .default([])
  .check(({ value, issues }) => {
    value.forEach(({ subject: one }, index) => {
      if (value.findIndex(({ subject }) => subject === one) === index) return;
      const message = 'is listed twice';
      issues.push({ code: 'custom', path: [index, 'subject'], message, input: one });
    });
  });

/** The body of `POST /clients`. */
export const givenClient = z.strictObject({
  name: givenName,
  organisation: givenId.optional(),
  members: memberList,
});
