import { z } from 'zod';
import { HEALTHS, SITE_STATES } from '../../gitops/report/site-state.ts';
import { containerResources } from '../../sites/manifest/resources/schema.ts';
import { givenId } from '../../sites/manifest/schema.ts';
import { serviceAccountFacts } from '../../sites/manifest/service-account.ts';
import { clientKeys, shownTls } from '../../sites/requests/container.ts';
import { PRODUCTS } from '../../sites/requests/products.ts';
import { PROOF_STATUSES } from '../lifecycle/proof.ts';
import { STATUS_REASONS, STATUSES, type StatusReason } from '../lifecycle/status.ts';
import { OPERATION_STATUSES, SAGA_KINDS, STEPS } from '../lifecycle/steps.ts';

export const containerParams = z.strictObject({ id: givenId });

/** The header of a request whose dry run answers a checksum. */
export const planHeader = {
  'x-tagyard-plan': z.string().max(128).optional().meta({
    description:
      '`plan.checksum` of a dry run of this request: saves what that plan shows, generated values included, or is refused',
  }),
};

/** The headers of every request that changes a container. */
export const changeHeaders = z.looseObject({
  ...planHeader,
  'if-match': z
    .string()
    .max(1024)
    .optional()
    .meta({ description: '`etag` of a GET: the change is refused if the container has changed since' }),
});

export const statusReason = z.enum(Object.keys(STATUS_REASONS) as [StatusReason, ...StatusReason[]]); // Object.keys drops the key type

export const stateView = z
  .object({
    name: z.enum(SITE_STATES),
    since: z.iso.datetime(),
    sentence: z.string(),
    remedy: z.string().nullable().meta({ description: 'what to do; null: nothing' }),
    detail: z.string().nullable().meta({ description: 'the cause as it was reported' }),
    also: z.array(z.enum(SITE_STATES)).meta({ description: 'the other states that hold, too' }),
  })
  .meta({
    id: 'SiteState',
    description: 'the state of the site: of the states that hold, the first one in the order of the enum',
  });

const sameOriginView = z
  .object({
    path: z.string(),
    forwarderToken: z
      .string()
      .optional()
      .meta({ description: 'for owners, admins and editors; not in lists. Treat it like a password' }),
    snippets: z
      .record(z.enum(PRODUCTS), z.string())
      .optional()
      .meta({ description: 'configurations of the domain’s own server, with the token' }),
  })
  .meta({ description: 'the path under which the domain’s own server forwards to the edge' });

export const proofView = z
  .object({
    status: z.enum(PROOF_STATUSES),
    record: z.object({ name: z.string(), value: z.string() }).meta({
      description: 'the TXT record that proves the domain; the value is the same for all domains of a client',
    }),
    checkedAt: z.iso.datetime().nullable(),
    absentSince: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'since when the record is missing; 14 days later the proof is lost' }),
  })
  .meta({
    description:
      'whether DNS proves that the registrable domain is the client’s; null: this installation doesn’t ask for proofs',
  });

/** A container as the API returns it. */
export const containerView = z
  .object({
    id: z.uuid(),
    siteId: z.string(),
    client: z.uuid(),
    clientId: z.uuid().meta({ description: 'the same as `client`', deprecated: true }),
    name: z.string(),
    status: z.enum(STATUSES),
    statusReason: statusReason.nullable(),
    statusDetail: z.string().nullable().meta({ description: 'the reason in more detail' }),
    suspended: z.boolean().meta({
      description:
        'true: changes are committed, but applied only when the site is resumed; `statusDetail` names them',
    }),
    serving: z
      .boolean()
      .meta({ description: 'false: the edge answers nothing of the site until it is resumed' }),
    protected: z.boolean().meta({ description: 'true: the container can’t be removed' }),
    resources: containerResources,
    health: z.enum(HEALTHS).meta({
      description:
        'degraded: it is failing, or some of its servers are; unknown: it isn’t up, or its host reports nothing',
    }),
    state: stateView,
    firstVisitAt: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'when a page first got its tags from here; null: no visit has been counted yet' }),
    image: z.string().meta({ description: 'the tag server’s image, pinned by digest' }),
    features: z.record(z.string(), z.boolean()),
    modules: z.record(z.string(), z.unknown()),
    ...clientKeys,
    tls: shownTls,
    hostnames: z.object({ edge: z.string(), origin: z.string(), preview: z.string() }),
    loaderToken: z.string(),
    snippet: z.string().meta({ description: 'the HTML to paste into the pages of the first domain' }),
    domains: z.array(
      z.object({
        domain: z.string(),
        webTagId: z.string(),
        containerToken: z.string(),
        active: z.boolean(),
        snippet: z.string(),
        sandboxSnippet: z.string().meta({
          description:
            'the HTML for pages without an origin of their own, such as pixels of shops: without the loader, so without a visitor’s id and its rules of consent',
        }),
        contentSecurityPolicy: z.string().meta({
          description: 'the sources that a content security policy of the domain’s pages must allow',
        }),
        sameOrigin: sameOriginView.nullable(),
        proof: proofView.nullable(),
      }),
    ),
    customDomains: z.array(z.string()),
    warnings: z.array(z.object({ host: z.string(), detail: z.string() })).meta({
      description:
        'the container’s hosts that a common blocking list names; in the answer to a creation also its edge hostname, if such a list kept it from being made from `name`',
    }),
    serviceAccount: serviceAccountFacts.nullable().meta({
      description: 'the Google Cloud service account of the tag server; no answer contains its key',
    }),
    revision: z.string().nullable().meta({ description: 'commit of the sites repository' }),
    operation: z
      .object({
        id: z.uuid(),
        kind: z.enum(SAGA_KINDS),
        status: z.enum(OPERATION_STATUSES),
        step: z.enum(STEPS),
      })
      .nullable(),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'Container' });
export type ContainerView = z.output<typeof containerView>;
