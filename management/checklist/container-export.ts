import { z } from 'zod';
import { counted } from '../../gitops/base/text.ts';
import { isProven, provenHosts } from '../../gitops/manifest/schema.ts';
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

/**
 * The file of a web or a server container that Tag Manager's *Admin, Export container* writes: a version of the
 * container, as Tag Manager's API has it (developers.google.com, Tag Manager API v2, accounts.containers.versions).
 */
export const containerExport = z
  .looseObject({
    exportFormatVersion: z.number().int(),
    containerVersion: z.looseObject({
      container: z.looseObject({
        publicId: z.string().max(50),
        usageContext: z.array(z.string().max(50)).min(1).max(10),
        taggingServerUrls: z.array(z.string().max(2_000)).max(100).default([]),
      }),
      tag: z.array(entity).max(5_000).default([]),
      variable: z.array(entity).max(5_000).default([]),
      client: z.array(entity).max(500).default([]),
    }),
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
const GOOGLE_TAGS = ['googtag', 'gaawc'];
const GA4_CLIENT = 'gaaw_client';
/**
 * The keys under which a Google tag names its server: the current one, the earlier one, and that of the field in Tag
 * Manager.
 */
const SERVER_KEYS = ['server_container_url', 'transport_url', 'serverContainerUrl'];
/** Lists and maps in a parameter are read to this depth. */
const DEPTH = 6;
const MOST_VALUES = 2_000;
const LONGEST_VALUE = 2_000;
/** Many tags may name one variable: it is read once. */
const READ = new WeakMap<readonly unknown[], ReadonlyMap<string, string>>();

type Site = Pick<ManifestView, 'hostnames' | 'customDomains' | 'domains' | 'unproven'>;

/** The verdicts on those points of the checklist that the export shows. The details quote nothing of the export. */
export function judgeExport(given: ContainerExport, site: Site): PointVerdict[] {
  const { usageContext } = given.containerVersion.container;
  const kinds = usageContext.map((kind) => kind.toUpperCase());
  if (kinds.includes('SERVER')) return [taggingServerUrl(given, site), client(given)];
  if (kinds.includes('WEB')) return [googleTag(given, site), ids(given, site)];
  return [];
}

function taggingServerUrl({ containerVersion: { container } }: ContainerExport, site: Site): PointVerdict {
  const id = 'tagging_server_url';
  if (container.taggingServerUrls.length === 0) return open(id, 'the server container has no URL');
  return container.taggingServerUrls.some((url) => leadsTo(site, url))
    ? done(id, 'a tagging server URL in Tag Manager leads to this container')
    : open(id, 'no tagging server URL in Tag Manager leads to this container');
}

function client({ containerVersion }: ContainerExport): PointVerdict {
  const id = 'client_claims';
  const clients = containerVersion.client.filter(({ paused }) => paused !== true);
  if (clients.length === 0) return open(id, 'the server container has no client, so it answers no hit');
  return clients.some(({ type }) => type === GA4_CLIENT)
    ? done(id, 'the server container has a GA4 client')
    : { id, state: 'unknown', detail: 'the server container has clients, but none for GA4' };
}

function googleTag({ containerVersion: { tag, variable } }: ContainerExport, site: Site): PointVerdict {
  const id = 'google_tag';
  const tags = tag.filter(({ type, paused }) => GOOGLE_TAGS.includes(type) && paused !== true);
  if (tags.length === 0) return open(id, 'the web container has no Google tag');
  const states = tags.map((one) => serverState(one, variable, site));
  const count = (state: (typeof states)[number]) => states.filter((one) => one === state).length;
  const of = `of ${tags.length} Google tags`;
  if (count('right') === tags.length) return done(id, `all ${of} send to this container`);
  if (count('none') > 0) return open(id, `${count('none')} ${of} have no server container URL`);
  if (count('other') > 0) return open(id, `${count('other')} ${of} send to another server`);
  const detail = `${count('unknown')} ${of} take the URL from a variable that only a page can compute`;
  return { id, state: 'unknown', detail };
}

function ids({ containerVersion: { container } }: ContainerExport, { domains }: Site): PointVerdict {
  const id = 'ids_agree';
  const those = domains.filter(({ webTagId }) => webTagId === container.publicId);
  return those.length > 0
    ? done(id, `it is the web container of ${those.length} of ${counted(domains.length, 'domain')}`)
    : open(id, 'no domain has this web container');
}

function serverState(
  tag: Entity,
  variables: readonly Entity[],
  site: Site,
): 'right' | 'other' | 'none' | 'unknown' {
  const settings = settingsOf(tag.parameter);
  const shared = settings.get('configSettingsVariable');
  const named = shared === undefined ? undefined : variableOf(shared, variables);
  const inherited = named === undefined ? undefined : settingsOf(named.parameter);
  const given = SERVER_KEYS.map((key) => settings.get(key) ?? inherited?.get(key)).find(
    (value) => value !== undefined && value !== '',
  );
  if (given === undefined) return shared !== undefined && named === undefined ? 'unknown' : 'none';
  const url = resolved(given, variables);
  if (url === null) return 'unknown';
  return leadsTo(site, url) ? 'right' : 'other';
}

/** A text, or the constant that it names; `null`: it has other variables. */
function resolved(text: string, variables: readonly Entity[]): string | null {
  const constant = variableOf(text, variables);
  const value = constant?.type === 'c' ? settingsOf(constant.parameter).get('value') : text;
  return value === undefined || value.includes('{{') ? null : value;
}

/** The variable that a text consists of: `{{Name}}`. */
function variableOf(text: string, variables: readonly Entity[]): Entity | undefined {
  const name = /^\{\{(.+)\}\}$/.exec(text.trim())?.[1];
  return name === undefined ? undefined : variables.find((one) => one.name === name);
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
function leadsTo(site: Site, text: string): boolean {
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

const done = (id: PointVerdict['id'], detail: string): PointVerdict => ({ id, state: 'done', detail });
const open = (id: PointVerdict['id'], detail: string): PointVerdict => ({ id, state: 'open', detail });
