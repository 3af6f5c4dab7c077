import { z } from 'zod';
import { givenId, givenName } from '../../sites/manifest/schema.ts';
import { givenClient, memberList } from '../../sites/requests/members.ts';
import { examples } from '../http/examples.ts';
import { pageQuery, pageSchema } from '../view/page.ts';
import { memberView } from './member.schema.ts';

const EXAMPLE_ID = '7c9e6679-7425-40de-944b-e07fc1f90ae7';

const role = z.enum(['owner', 'admin', 'editor', 'viewer']).nullable().meta({
  description:
    'the caller’s role, the stronger one if both client and organisation give one; null: the caller is an operator without a role',
});

export const organisationView = z
  .object({ id: z.uuid(), name: z.string(), archivedAt: z.iso.datetime().nullable(), role })
  .meta({ id: 'Organisation' });

export const clientView = z
  .object({
    id: z.uuid(),
    name: z.string(),
    organisation: z.uuid().nullable(),
    archivedAt: z.iso.datetime().nullable(),
    role,
  })
  .meta({ id: 'Client' });

export const createdClient = clientView
  .extend({ members: z.array(memberView) })
  .meta({ id: 'CreatedClient' });
export const createdOrganisation = organisationView
  .extend({ members: z.array(memberView) })
  .meta({ id: 'CreatedOrganisation' });

export const newClient = givenClient.meta(
  examples({ 'with an owner': { name: 'Acme', members: [{ subject: 'auth0|ada', role: 'owner' }] } }),
);

export const newOrganisation = z
  .strictObject({ name: givenName, members: memberList })
  .meta(
    examples({ 'with an owner': { name: 'Agency', members: [{ subject: 'auth0|ada', role: 'owner' }] } }),
  );

export const clientPatch = z
  .strictObject({
    name: givenName.optional(),
    organisation: givenId.nullable().optional().meta({ description: 'only operators may change it' }),
  })
  .meta(examples({ 'another name': { name: 'Acme Ltd' }, 'an organisation': { organisation: EXAMPLE_ID } }));

export const organisationPatch = z
  .strictObject({ name: givenName })
  .meta(examples({ 'another name': { name: 'Agency Ltd' } }));

export const tenantParams = z.strictObject({ id: givenId });

const q = z
  .string()
  .min(1)
  .max(120)
  .optional()
  .meta({ description: 'a part of the name, without regard to case' });

const archived = z.enum(['0', '1']).default('0').meta({ description: '`1`: archived ones too' });

export const organisationQuery = z.strictObject({ q, archived, ...pageQuery });
/** Where a page of a list by name begins: the name and id of the last entry of the page before. */
export const nameKey = z.tuple([z.string(), z.uuid()]);

export const memberQuery = z.strictObject(pageQuery);
export const clientQuery = organisationQuery.extend({ organisation: z.uuid().optional() });

export const clientPage = pageSchema(clientView).meta({ id: 'ClientList', description: 'by name' });
export const organisationPage = pageSchema(organisationView).meta({
  id: 'OrganisationList',
  description: 'by name',
});

export const tenantHeaders = z.looseObject({
  'if-match': z
    .string()
    .max(1024)
    .optional()
    .meta({ description: '`etag` of a GET: refused if name, members or organisation have changed since' }),
});
