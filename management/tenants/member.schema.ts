import { z } from 'zod';
import { givenId } from '../../sites/manifest/schema.ts';
import { memberSubject, storedMember } from '../../sites/requests/members.ts';
import { examples } from '../http/examples.ts';

export const memberParams = z.strictObject({ id: givenId, subject: memberSubject });
export const memberRole = z
  .strictObject({ role: storedMember.shape.role })
  .meta(examples({ 'an admin': { role: 'admin' } }));
export const memberView = storedMember.meta({ id: 'Member' });
export const memberPage = z
  .object({ items: z.array(memberView), next: z.string().nullable() })
  .meta({ id: 'MemberList', description: 'by subject' });
