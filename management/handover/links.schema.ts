import { z } from 'zod';
import { givenId } from '../../sites/manifest/schema.ts';
import { examples } from '../http/examples.ts';
import { pageQuery, pageSchema } from '../view/page.ts';

export const newLink = z
  .strictObject({
    container: z.uuid().optional().meta({ description: 'default: all of the client’s containers' }),
    recipients: z.array(z.email().max(254)).max(10).default([]).meta({
      description:
        'who gets one mail when all records are right: addresses in the domains of the containers’ pages',
    }),
    expiresAt: z.iso.datetime().optional().meta({
      description:
        'default: in 30 days; at most in 90, and no later than the expiry of a calling service token',
    }),
  })
  .meta(
    examples({
      'all containers': { recipients: ['dns@acme.example'] },
      'without a mail': {},
    }),
  );

const linkView = z
  .object({
    id: z.uuid(),
    container: z.uuid().nullable().meta({ description: 'null: all of the client’s containers' }),
    recipients: z.array(z.string()),
    createdBy: z.string().meta({ description: 'subject' }),
    createdAt: z.iso.datetime(),
    expiresAt: z.iso.datetime(),
    completeAt: z.iso.datetime().nullable().meta({ description: 'when all records were first right' }),
    mail: z.object({
      state: z.enum(['none', 'waiting', 'due', 'sending', 'sent', 'failed', 'unclear']).meta({
        description: 'none: no recipients; unclear: the server may have accepted it, so it isn’t sent again',
      }),
      attempts: z.int(),
      error: z.string().nullable().meta({ description: 'of the last attempt' }),
    }),
  })
  .meta({ id: 'HandoverLink' });

export const createdLink = linkView
  .extend({
    secret: z.string().meta({ description: 'the end of the page’s address; it is shown only now' }),
    url: z.string().meta({ description: 'the page; without PUBLIC_URL only its path' }),
  })
  .meta({ id: 'CreatedHandoverLink' });

export const linkPage = pageSchema(linkView)
  .extend({
    sendsMail: z.boolean().meta({ description: 'false: SMTP_URL isn’t set, so no mail is sent to anyone' }),
  })
  .meta({
    id: 'HandoverLinkList',
    description: 'the links that haven’t expired',
  });
export const linkParams = z.strictObject({ id: givenId, link: z.uuid() });
export const linkQuery = z.strictObject(pageQuery);
export const pageParams = z.object({ secret: z.string().max(100) });
export const pageQuerySchema = z.object({ check: z.string().optional() });
