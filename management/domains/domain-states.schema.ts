import { z } from 'zod';
import { givenDomain, givenId } from '../../sites/manifest/schema.ts';
import { proofView } from '../view/container-view.ts';

export const domainStateParams = z.strictObject({ id: givenId, domain: givenDomain });

const record = z.object({ type: z.enum(['CNAME', 'A', 'AAAA', 'TXT']), name: z.string(), value: z.string() });

const answers = z
  .array(
    z.object({
      resolver: z.string(),
      addresses: z.array(z.string()),
      aliases: z.array(z.string()).meta({ description: 'the names that the CNAME leads to, in order' }),
      problem: z.string().nullable().meta({ description: 'why the resolver gave no answer' }),
    }),
  )
  .meta({ description: 'what each resolver answers' });

const cookieLifetime = z
  .object({
    verdict: z.enum(['full', 'seven_days', 'unknown']),
    reason: z
      .string()
      .nullable()
      .meta({ description: 'why Safari limits the cookies, or why that is unknown' }),
  })
  .meta({ description: 'how long Safari keeps cookies that the tags of the domain’s pages set' });

/** When the resolvers were asked. */
const checkedAt = z.iso.datetime();

/** A custom domain as the API shows it. */
export const customDomainView = z
  .object({
    domain: z.string(),
    served: z.boolean().meta({ description: 'false: not served before its registrable domain is proven' }),
    state: z
      .object({
        name: z.enum([
          'removed',
          'off',
          'setting_up',
          'waits_for_proof',
          'waits_for_dns',
          'ready_to_switch',
          'waits_for_certificate',
          'serving',
        ]),
        sentence: z.string(),
        remedy: z.string().nullable().meta({ description: 'what to do; null: nothing' }),
      })
      .meta({ description: 'the state of this domain; that of its site may be another one' }),
    records: z
      .array(record)
      .meta({ description: 'the records to set: the first one, or all the others instead of it' }),
    dns: z.object({
      status: z.enum(['ok', 'missing', 'wrong', 'unknown']),
      detail: z.string().nullable().meta({ description: 'what is wrong, and what to do' }),
      expected: z.object({ alias: z.string(), addresses: z.array(z.string()) }),
      answers,
    }),
    tls: z
      .object({
        status: z.enum(['pending_dns', 'pending_certificate', 'live', 'drifted', 'expired', 'unknown']),
        issuer: z.string().nullable(),
        notAfter: z.iso.datetime().nullable(),
        detail: z
          .string()
          .nullable()
          .meta({ description: 'what is missing, with the error of the last try to get a certificate' }),
      })
      .meta({ description: 'the certificate as the host knows it' }),
    proof: proofView.nullable(),
    cookieLifetime,
    checkedAt,
  })
  .meta({ id: 'CustomDomain' });
export type CustomDomainView = z.output<typeof customDomainView>;

export const customDomainList = z.object({
  items: z.array(customDomainView),
  next: z.string().nullable().meta({ description: 'null: this is the last page' }),
});

/** A domain whose pages have the snippet. */
export const domainStateView = z
  .object({
    domain: z.string(),
    active: z.boolean(),
    address: z.string().meta({ description: 'from where its pages load the tags' }),
    records: z
      .array(record)
      .meta({ description: 'the record that proves the domain; empty: none is needed' }),
    sameOrigin: z
      .object({ path: z.string(), served: z.boolean() })
      .nullable()
      .meta({ description: '`served` is false until the domain is proven' }),
    dns: z.object({ answers }),
    proof: proofView.nullable(),
    cookieLifetime,
    checkedAt,
  })
  .meta({ id: 'DomainState' });
export type DomainStateView = z.output<typeof domainStateView>;
