import { z } from 'zod';
import { givenId } from '../../sites/manifest/schema.ts';
import { examples } from '../http/examples.ts';
import { pageQuery, pageSchema } from '../view/page.ts';

const role = z.enum(['owner', 'admin', 'editor', 'viewer']);

export const newInvitation = z
  .strictObject({
    email: z
      .email()
      .max(254)
      .optional()
      .meta({ description: 'only for display: anyone who has the token may accept' }),
    role: role.meta({ description: 'at most the caller’s own' }),
    expiresAt: z.iso.datetime().optional().meta({
      description:
        'default: in seven days; at most in thirty, and if a service token makes the invitation, no later than the token expires',
    }),
  })
  .meta(examples({ 'an editor': { email: 'ada@example.com', role: 'editor' } }));

const invitation = z
  .object({
    id: z.uuid(),
    client: z.uuid().nullable(),
    organisation: z.uuid().nullable(),
    email: z.string().nullable(),
    role,
    createdBy: z.string().meta({ description: 'subject' }),
    createdAt: z.iso.datetime(),
    expiresAt: z.iso.datetime(),
  })
  .meta({ id: 'Invitation' });

export const createdInvitation = invitation
  .extend({ token: z.string().meta({ description: 'for the link to send; it is shown only now' }) })
  .meta({ id: 'CreatedInvitation' });
export const invitationPage = pageSchema(invitation).meta({
  id: 'InvitationList',
  description: 'those that can still be accepted',
});
export const invitationQuery = z.strictObject({
  client: z.uuid().optional(),
  organisation: z.uuid().optional(),
  ...pageQuery,
});
export const invitationParams = z.strictObject({ id: givenId, invitation: z.uuid() });

export const acceptance = z
  .strictObject({ token: z.string().min(1).max(100) })
  .meta(examples({ 'from a link': { token: 'tgi_MfL3p1v0Vh9c2mT7w8XzQk4bN6yRj5sA1dE0fGhIuCo' } }));
export const accepted = z
  .object({
    client: z.uuid().nullable(),
    organisation: z.uuid().nullable(),
    role: z
      .string()
      .meta({ description: 'the caller’s role now: a stronger one that the caller had before is kept' }),
  })
  .meta({ id: 'AcceptedInvitation' });
