import { z } from 'zod';
import { counted } from '../../base/text.ts';
import { isProven, provenHosts } from '../../sites/manifest/schema.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import { examples } from '../http/examples.ts';
import type { PointVerdict } from './items.ts';

const entity = z.looseObject({
  type: z.string().max(200),
  name: z.string().max(1_000).optional(),
  paused: z.boolean().optional(),
  parameter: z.array(z.unknown()).max(1_000).default([]),
});
type Entity = z.output<typeof entity>;

/** For a file of another kind, and for an object of Tag Manager's API. */
const needed = ({ input }: { readonly input?: unknown }) =>
  input === undefined
    ? 'is missing: send the file that Tag Manager’s Admin, Export container saves'
    : undefined;

/**
 * The file of a web or a server container that Tag Manager's *Admin, Export container* writes: a version of the
 * container, as Tag Manager's API has it (developers.google.com, Tag Manager API v2, accounts.containers.versions).
 * Members without content are absent.
 */
export const containerExport = z
  .looseObject({
    exportFormatVersion: z.number().int().optional(),
    containerVersion: z.looseObject(
      {
        container: z.looseObject(
          {
            publicId: z.string({ error: needed }).max(50),
            usageContext: z.array(z.string().max(50), { error: needed }).min(1).max(10),
            taggingServerUrls: z.array(z.string().max(2_000)).max(100).optional(),
          },
          { error: needed },
        ),
        tag: z.array(entity).max(5_000).default([]),
        variable: z.array(entity).max(5_000).default([]),
        client: z.array(entity).max(500).default([]),
        zone: z.array(z.unknown()).max(500).default([]),
      },
      { error: needed },
    ),
  })
  .meta({
    ...examples({
      'a web container': {
        exportFormatVersion: 2,
        containerVersion: {
          container: { publicId: 'GTM-ABC1234', usageContext: ['WEB'] },
          tag: [
            {
              type: 'googtag',
              name: 'Google tag',
              parameter: [
                { type: 'TEMPLATE', key: 'tagId', value: 'G-ABC1234' },
                {
                  type: 'LIST',
                  key: 'configSettingsTable',
                  list: [
                    {
                      type: 'MAP',
                      map: [
                        { type: 'TEMPLATE', key: 'parameter', value: 'server_container_url' },
                        { type: 'TEMPLATE', key: 'parameterValue', value: 'https://data.acme.example' },
                      ],
                    },
                  ],
                },
              ],
            },
          ],
        },
      },
      'a server container': {
        exportFormatVersion: 2,
        containerVersion: {
          container: {
            publicId: 'GTM-SRV1234',
            usageContext: ['SERVER'],
            taggingServerUrls: ['https://data.acme.example'],
          },
          client: [{ type: 'gaaw_client', name: 'GA4' }],
        },
      },
    }),
  });
type ContainerExport = z.output<typeof containerExport>;

/** The Google tag, and the configuration of GA4 that came before it. */
const GA4_CONFIGURATION = 'gaawc';
const GOOGLE_TAGS = ['googtag', GA4_CONFIGURATION];
const GA4_EVENT = 'gaawe';
const GA4_CLIENT = 'gaaw_client';
const HTML = 'html';
/** A tag by a custom template, such as a Data Tag. */
const BY_TEMPLATE = 'cvt_';
/** Ids of Google Ads and of Floodlight; the server container URL isn't used for them. */
const NOT_GA4 = /^(?:AW|DC)-/i;
const MAYBE_GA4 = /^GT-/i;
/**
 * The keys under which a Google tag names its server: the current one, the earlier one, and that of the field in Tag
 * Manager.
 */
const SERVER_KEYS = ['server_container_url', 'transport_url', 'serverContainerUrl'];
const SHARED_SETTINGS = 'gtcs';
const CONSTANT = 'c';
/** What is found of a Google tag's server; the first one that any tag has decides. */
const SERVER_STATES = {
  none: { state: 'open', words: 'Google tags of GA4 without a server container URL' },
  other: { state: 'open', words: 'Google tags of GA4 that send to another server' },
  computed: { state: 'unknown', words: 'Google tags whose server container URL only a page can compute' },
  unclear: { state: 'unknown', words: 'Google tags without a server container URL that may be of GA4' },
  right: { state: 'done', words: 'Google tags of GA4 that send to this container' },
} as const;

/** Lists and maps in a parameter are read to this depth. */
const DEPTH = 6;
const MOST_VALUES = 2_000;
const LONGEST_VALUE = 2_000;
/** A text with more constants in it counts as one that only a page can compute: they may name each other. */
const MOST_CONSTANTS = 20;
/** Many tags may name one variable: it is read once. */
const READ = new WeakMap<readonly unknown[], ReadonlyMap<string, string>>();

export type CheckedSite = Pick<ManifestView, 'hostnames' | 'customDomains' | 'domains' | 'unproven'>;

/** The verdicts on those points of the checklist that the export shows. The details quote nothing of the export. */
export function judgeExport(given: ContainerExport, site: CheckedSite): PointVerdict[] {
  const { usageContext } = given.containerVersion.container;
  const kinds = usageContext.map((kind) => kind.toUpperCase());
  if (kinds.includes('SERVER')) return [taggingServerUrl(given, site), client(given)];
  if (kinds.includes('WEB')) return [googleTag(given, site), ids(given, site)];
  return [];
}

function taggingServerUrl(
  { containerVersion: { container } }: ContainerExport,
  site: CheckedSite,
): PointVerdict {
  const id = 'tagging_server_url';
  const { taggingServerUrls: urls } = container;
  if (urls === undefined) {
    return unknown(id, 'the export has no server container URLs; look at them in Tag Manager');
  }
  if (urls.length === 0) return open(id, 'the server container has no URL');
  return urls.some((url) => leadsTo(site, url))
    ? done(id, 'a tagging server URL in Tag Manager leads to this container')
    : open(id, 'no tagging server URL in Tag Manager leads to this container');
}

function client({ containerVersion }: ContainerExport): PointVerdict {
  const id = 'client_claims';
  const clients = containerVersion.client.filter(({ paused }) => paused !== true);
  if (clients.length === 0) return open(id, 'the server container has no client, so it answers no hit');
  return clients.some(({ type }) => type === GA4_CLIENT)
    ? done(id, 'the server container has a GA4 client')
    : unknown(id, 'the server container has clients, but none for GA4');
}

function googleTag(given: ContainerExport, site: CheckedSite): PointVerdict {
  const { tag, variable } = given.containerVersion;
  const variables: Variables = new Map(variable.map((one) => [one.name ?? '', one]));
  const found = tag
    .filter(({ type, paused }) => GOOGLE_TAGS.includes(type) && paused !== true)
    .map((one) => serverState(one, variables, site))
    .filter((one) => one !== null);
  for (const [kind, { state, words }] of Object.entries(SERVER_STATES)) {
    const number = found.filter((one) => one === kind).length;
    const detail = `${words}: ${number} of ${found.length}`;
    if (number > 0) return { id: 'google_tag', state, detail };
  }
  return withoutGoogleTag(given, variables, site);
}

/** Of a container without a Google tag of GA4: hits can come from its other tags, or from a tag that is elsewhere. */
function withoutGoogleTag(
  { containerVersion: { tag, zone } }: ContainerExport,
  variables: Variables,
  site: CheckedSite,
): PointVerdict {
  const id = 'google_tag';
  const none = 'the web container has no Google tag of GA4';
  const tags = tag.filter(({ paused }) => paused !== true);
  const own = tags.filter(({ type, parameter }) => {
    if (!type.startsWith(BY_TEMPLATE)) return false;
    return [...settingsOf(parameter).values()].some((value) => leadsTo(site, textOf(value, variables) ?? ''));
  });
  if (own.length > 0)
    return unknown(
      id,
      `${none}, but ${counted(own.length, 'other tag sends', 'other tags send')} to this container`,
    );
  if (tags.some(({ type }) => type === GA4_EVENT)) {
    return unknown(id, `${none}, but events of GA4; their Google tag may be in the pages`);
  }
  if (zone.length > 0) return unknown(id, `${none}; the containers of its zones may have it`);
  if (tags.some(({ type }) => type === HTML || type.startsWith(BY_TEMPLATE))) {
    return unknown(id, `${none}; where its tags by templates and HTML send, the export doesn’t show`);
  }
  return open(id, none);
}

function ids({ containerVersion: { container } }: ContainerExport, { domains }: CheckedSite): PointVerdict {
  const id = 'ids_agree';
  const those = domains.filter(({ webTagId }) => webTagId === container.publicId);
  return those.length > 0
    ? done(id, `it is the web container of ${those.length} of ${counted(domains.length, 'domain')}`)
    : open(id, 'no domain has this web container');
}

/** `null`: the tag isn't of GA4, so it needs no server. */
function serverState(
  { type, parameter }: Entity,
  variables: Variables,
  site: CheckedSite,
): keyof typeof SERVER_STATES | null {
  const settings = settingsOf(parameter);
  const tagId = type === GA4_CONFIGURATION ? '' : textOf(settings.get('tagId') ?? '', variables);
  if (tagId !== null && NOT_GA4.test(tagId)) return null;
  const shared = settings.get('configSettingsVariable');
  const name = /^\{\{(.+)\}\}$/.exec(shared?.trim() ?? '')?.[1];
  const named = name === undefined ? undefined : variables.get(name.trim());
  const inherited = named?.type === SHARED_SETTINGS ? settingsOf(named.parameter) : undefined;
  const given = SERVER_KEYS.map((key) => settings.get(key) ?? inherited?.get(key)).find(
    (value) => value !== undefined && value !== '',
  );
  if (given === undefined) {
    if (shared !== undefined && inherited === undefined) return 'computed';
    return tagId === null || MAYBE_GA4.test(tagId) ? 'unclear' : 'none';
  }
  const url = textOf(given, variables);
  if (url === null) return 'computed';
  return leadsTo(site, url) ? 'right' : 'other';
}

/** The variables of a container by name. */
type Variables = ReadonlyMap<string, Entity>;

/** A text with the values of the constants in it; `null`: it has other variables, so only a page knows. */
function textOf(text: string, variables: Variables): string | null {
  let whole = text.trim();
  for (let left = MOST_CONSTANTS; left >= 0 && whole.length <= LONGEST_VALUE; left -= 1) {
    const [reference, name = ''] = /\{\{(.+?)\}\}/.exec(whole) ?? [];
    if (reference === undefined) return whole;
    const variable = variables.get(name.trim());
    if (variable?.type !== CONSTANT) return null;
    const value = settingsOf(variable.parameter).get('value')?.trim() ?? '';
    whole = whole.replace(reference, () => value);
  }
  return null;
}

/** The values of parameters, and of the rows of their tables, by their keys. */
function settingsOf(parameters: readonly unknown[]): ReadonlyMap<string, string> {
  const known = READ.get(parameters);
  if (known !== undefined) return known;
  const found = new Map<string, string>();
  collect(parameters, found, DEPTH);
  READ.set(parameters, found);
  return found;
}

function collect(parameters: readonly unknown[], found: Map<string, string>, depth: number): void {
  if (depth === 0) return;
  const row = new Map<unknown, string>();
  for (const one of parameters) {
    if (typeof one !== 'object' || one === null || found.size > MOST_VALUES) continue;
    const { key, value, list, map } = one as Record<string, unknown>; // checked below
    if (typeof key === 'string' && typeof value === 'string' && value.length <= LONGEST_VALUE) {
      found.set(key, value);
      row.set(key, value);
    }
    for (const inner of [list, map]) if (Array.isArray(inner)) collect(inner, found, depth - 1);
  }
  // A table's row: `parameter` in a Google tag, `name` in the configuration of GA4.
  const name = row.get('parameter') ?? row.get('name');
  const value = row.get('parameterValue') ?? row.get('value');
  if (name !== undefined && value !== undefined) found.set(name, value);
}

/** Whether hits to the URL arrive at the site: at its edge hostname, or at a proven custom domain or prefix. */
function leadsTo(site: CheckedSite, text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { hostname, pathname } = new URL(text);
  if ([site.hostnames.edge, ...provenHosts(site)].includes(hostname)) return true;
  return site.domains.some(
    ({ domain, sameOrigin }) =>
      sameOrigin !== undefined &&
      isProven(site, domain) &&
      (hostname === domain || hostname.endsWith(`.${domain}`)) &&
      `${pathname}/`.startsWith(`${sameOrigin.path}/`),
  );
}

const unknown = (id: PointVerdict['id'], detail: string): PointVerdict => ({ id, state: 'unknown', detail });
const done = (id: PointVerdict['id'], detail: string): PointVerdict => ({ id, state: 'done', detail });
const open = (id: PointVerdict['id'], detail: string): PointVerdict => ({ id, state: 'open', detail });
