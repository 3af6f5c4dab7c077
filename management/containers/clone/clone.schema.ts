import { z } from 'zod';
import { givenId, givenName } from '../../../sites/manifest/schema.ts';
import { containerConfigB64, givenPages, givenSiteId, pagesOf } from '../../../sites/requests/container.ts';
import { examples } from '../../http/examples.ts';

export const newClone = z
  .strictObject({
    name: givenName,
    siteId: givenSiteId,
    ...givenPages,
    containerConfigB64: containerConfigB64
      .optional()
      .meta({ description: 'without it, the clone has the configuration of the original' }),
    clientId: givenId.optional().meta({ description: 'the same as `client`', deprecated: true }),
    client: givenId.optional().meta({ description: 'without it, the clone belongs to the same client' }),
  })
  .transform((body, context) => {
    const issue = (path: PropertyKey[], message: string) =>
      context.issues.push({ code: 'custom', path, message, input: body });
    const pages = pagesOf(body, issue);
    const { domains: _, webTagIds: __, client, clientId = client, ...rest } = body;
    if (client !== undefined && client !== clientId) issue(['clientId'], 'differs from `client`');
    return { ...rest, clientId, pages };
  })
  .meta(
    examples({
      'for another country': {
        name: 'Acme Spain',
        domains: ['acme-es.example'],
        webTagIds: { 'acme-es.example': 'GTM-ABC5678' },
      },
    }),
  );
