import type { z } from 'zod';
import { RetryableError } from '../../../base/errors.ts';
import type { KubernetesObject } from '../client/kinds.ts';
import { type InstanceDocument, instanceDocument, type SiteDocument, siteDocument } from './documents.ts';

/** The label by which a gateway finds what is delivered to it. */
export const DELIVERY_LABEL = 'tagyard/gateway';

/** A Secret's content, as a gateway uses it. */
export type Delivered =
  | { readonly kind: 'site'; readonly document: SiteDocument }
  | { readonly kind: 'instance'; readonly document: InstanceDocument }
  /** PEM texts: the certificate with its chain, and its key. It is for the names in the certificate. */
  | { readonly kind: 'certificate'; readonly cert: string; readonly key: string };

/** The part of a Secret that carries what is delivered: its label, type and data. */
interface DeliverySecret {
  readonly labels: { readonly [DELIVERY_LABEL]: Delivered['kind'] };
  readonly type: 'Opaque' | 'kubernetes.io/tls';
  /** Base64, as in the API. */
  readonly data: Readonly<Record<string, string>>;
}

const DOCUMENT = 'document';
/** As in Secrets of the type `kubernetes.io/tls`, which cert-manager and others write. */
const TLS = { cert: 'tls.crt', key: 'tls.key' } as const;

/** Writes what `readDelivered` reads. */
export function deliverySecret(delivered: Delivered): DeliverySecret {
  const labels = { [DELIVERY_LABEL]: delivered.kind };
  if (delivered.kind === 'certificate') {
    const data = { [TLS.cert]: encode(delivered.cert), [TLS.key]: encode(delivered.key) };
    return { labels, type: 'kubernetes.io/tls', data };
  }
  return { labels, type: 'Opaque', data: { [DOCUMENT]: encode(JSON.stringify(delivered.document)) } };
}

/** Reads a labelled Secret. Throws `RetryableError`, whose message contains no value. */
export function readDelivered({ metadata, data }: KubernetesObject): Delivered {
  const kind = metadata.labels?.[DELIVERY_LABEL];
  const text = (key: string) => decode(data, key);
  if (kind === 'certificate') return { kind, cert: text(TLS.cert), key: text(TLS.key) };
  if (kind === 'site') return { kind, document: parse(siteDocument, text(DOCUMENT)) };
  if (kind === 'instance') return { kind, document: parse(instanceDocument, text(DOCUMENT)) };
  throw new RetryableError(`has the label ${DELIVERY_LABEL} with a value that this gateway doesn’t know`);
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64');
}

function decode(data: unknown, key: string): string {
  const value = typeof data === 'object' && data !== null ? Reflect.get(data, key) : undefined;
  if (typeof value !== 'string') throw new RetryableError(`has no data "${key}"`);
  return Buffer.from(value, 'base64').toString();
}

function parse<T>(schema: z.ZodType<T>, text: string): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new RetryableError('is not JSON');
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const faults = result.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`.trim());
  throw new RetryableError(faults.join('; '));
}
