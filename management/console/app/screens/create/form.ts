import type { paths } from '../../../../../base/client/index.ts';
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
  /** Empty: not chosen yet. */
  readonly consent: '' | 'opt_out' | 'required';
  /** The first label of the host names, if it isn't the proposed one. */
  readonly siteId: string;
  /** Empty: as the host has it. */
  readonly tls: '' | 'files' | 'acme';
}

const KEY = 'tagyard-new-container';

/** What was typed before, without the configuration, which has a secret and is never stored. */
export function keptCreation(clientId: string): Creation {
  const pages = [{ domain: '', webTagId: '' }];
  const empty: Creation = { clientId, name: '', config: '', pages, consent: '', siteId: '', tls: '' };
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? 'null');
    return typeof kept === 'object' && kept !== null ? { ...empty, ...kept, config: '' } : empty;
  } catch {
    return empty;
  }
}

export function keepCreation({ config: _, ...kept }: Creation): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(kept));
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

/** Whether a dry run can propose a host name. */
export function isPlannable({ name, config, pages }: Creation): boolean {
  return (
    name.trim() !== '' &&
    decodeConfig(config) !== null &&
    pages.every(({ domain, webTagId }) => domain.trim() !== '' && webTagId.trim() !== '')
  );
}

export function isComplete(creation: Creation): boolean {
  return isPlannable(creation) && creation.consent !== '';
}

/** `www.shop.example` of the address of a page, `https://www.shop.example/cart`. */
export function typedHost(typed: string): string {
  const text = typed.trim();
  return /^(?:https?:\/\/)?([^/?#]+)/i.exec(text)?.[1] ?? text;
}

/** More than one domain needs the plugin `multi_domain`. */
export function creationRequest({
  clientId,
  name,
  config,
  pages,
  consent,
  siteId,
  tls,
}: Creation): NewContainer {
  const rows = pages.map(({ domain, webTagId }) => ({
    domain: typedHost(domain),
    webTagId: webTagId.trim(),
  }));
  return {
    clientId,
    name: name.trim(),
    ...(siteId.trim() === '' ? {} : { siteId: siteId.trim() }),
    ...(tls === '' ? {} : { tls }),
    // As DEFAULT_CONSENT has them.
    ...(consent === 'required' ? { consent, consentMode: 'basic' } : {}),
    ...(consent === 'opt_out' ? { consent, consentMode: 'advanced' } : {}),
    domains: rows.map(({ domain }) => domain),
    webTagIds: Object.fromEntries(rows.map(({ domain, webTagId }) => [domain, webTagId])),
    containerConfigB64: config.trim(),
    ...(rows.length > 1 ? { features: { multi_domain: true } } : {}),
  };
}
