import type { paths } from '../../../../../gitops/clients/management/index.ts';
import { decodeConfig } from '../../text/container-config.ts';

type NewContainer = paths['/server-containers']['post']['requestBody']['content']['application/json'];

/** One domain and the tag id of its pages, as typed. */
interface PageRow {
  readonly domain: string;
  readonly webTagId: string;
}

/** What the form has, as typed. */
export interface Creation {
  readonly clientId: string;
  readonly name: string;
  readonly config: string;
  readonly pages: readonly PageRow[];
}

const KEY = 'tagyard-new-container';

/** What was typed before, without the configuration, which has a secret and is never stored. */
export function keptCreation(clientId: string): Creation {
  const empty: Creation = { clientId, name: '', config: '', pages: [{ domain: '', webTagId: '' }] };
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? 'null');
    return typeof kept === 'object' && kept !== null ? { ...empty, ...kept, config: '' } : empty;
  } catch {
    return empty;
  }
}

export function keepCreation({ clientId, name, pages }: Creation): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ clientId, name, pages }));
  } catch {
    // Without storage, a reload begins anew.
  }
}

export function forgetCreation(): void {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // There is nothing to forget.
  }
}

export function isComplete({ name, config, pages }: Creation): boolean {
  return (
    name.trim() !== '' &&
    decodeConfig(config) !== null &&
    pages.every(({ domain, webTagId }) => domain.trim() !== '' && webTagId.trim() !== '')
  );
}

/** More than one domain needs the plugin `multi_domain`. */
export function creationRequest({ clientId, name, config, pages }: Creation): NewContainer {
  const rows = pages.map(({ domain, webTagId }) => ({ domain: domain.trim(), webTagId: webTagId.trim() }));
  return {
    clientId,
    name: name.trim(),
    domains: rows.map(({ domain }) => domain),
    webTagIds: Object.fromEntries(rows.map(({ domain, webTagId }) => [domain, webTagId])),
    containerConfigB64: config.trim(),
    ...(rows.length > 1 ? { features: { multi_domain: true } } : {}),
  };
}
