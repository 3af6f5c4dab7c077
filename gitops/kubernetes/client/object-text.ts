import { KubernetesRetryable } from './errors.ts';
import { KINDS, type Kind, type KubernetesObject, type ManagedFields } from './kinds.ts';

/**
 * An item of a list or a watch as an object of its kind: items of a list don't name their kind, and those that consist
 * only of metadata name another one.
 */
export function objectOf(item: unknown, { kind }: { readonly kind: Kind }): KubernetesObject {
  const { metadata } = (item ?? {}) as { metadata?: { name?: unknown; managedFields?: unknown } };
  if (typeof metadata?.name !== 'string') {
    throw new KubernetesRetryable('unavailable', `Kubernetes: ${kind}: the answer is no object`);
  }
  const object = item as KubernetesObject;
  const { managedFields } = metadata;
  return {
    ...object,
    apiVersion: KINDS[kind].apiVersion,
    kind,
    metadata: Array.isArray(managedFields)
      ? { ...object.metadata, managedFields: managedFields.map(withText) }
      : object.metadata,
  };
}

function withText(entry: Omit<ManagedFields, 'fieldsV1'> & { readonly fieldsV1?: object }): ManagedFields {
  const { fieldsV1 } = entry;
  return { ...entry, fieldsV1: fieldsV1 === undefined ? '{}' : JSON.stringify(fieldsV1) };
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
