import type { ListItem, TagyardClient } from '../../base/client/client.ts';
import { escapeHiddenIn } from '../../base/text.ts';
import { answered, managementApi } from './client.ts';
import type { CliContext } from './instance/provisioner-client.ts';
import { sinceOf } from './logs.ts';
import { CliError } from './output/cli-error.ts';
import { header, type OutputOptions, print } from './output/print.ts';
import { table } from './output/table.ts';

export interface EventsOptions extends OutputOptions {
  readonly since: string;
  readonly kind?: 'status' | 'state' | 'changed' | 'manifest_refused' | 'host' | 'proof' | 'policy';
}

type Event = ListItem<'/events'>;
interface ShownEvent extends Event {
  readonly site: string;
  /** The state that this event of the kind `state` ended, and for how long it was; `null`: another kind, or unknown. */
  readonly ended: { readonly state: string; readonly seconds: number } | null;
}

/** `tagyard events`: what became of sites, when, why, and how long it lasted, as the management API has recorded it. */
export async function events(
  context: CliContext,
  site: string | undefined,
  { since, kind, ...output }: EventsOptions,
): Promise<void> {
  const from = sinceOf(since);
  const { api } = await managementApi(context);
  const shown = escapeHiddenIn(await answered(() => read(api, { site, from, kind })));
  if (shown === null)
    throw new CliError(`there is no site ${site}, or the token's subject is not a member of its client`);
  print(output, { events: shown }, () => render(shown));
}

/** The oldest first; `null`: there is no such site. */
async function read(
  api: TagyardClient,
  {
    site,
    from,
    kind,
  }: {
    readonly site: string | undefined;
    readonly from: string;
    readonly kind: EventsOptions['kind'] | undefined;
  },
): Promise<ShownEvent[] | null> {
  const sites = new Map<string, string>();
  const query = { view: 'summary', limit: 200 } as const;
  for await (const { id, siteId } of api.list('/server-containers', { params: { query } }))
    sites.set(id, siteId);
  // A name may be used again after a removal.
  const wanted = new Set(
    [...sites].flatMap(([id, name]) => (site === undefined || name === site ? [id] : [])),
  );
  if (site !== undefined && wanted.size === 0) return null;
  const found: Event[] = [];
  const feed = { limit: 200, ...(kind === undefined ? {} : { kind }) };
  for await (const event of api.list('/events', { params: { query: feed } })) {
    if (event.at < from) break;
    if (wanted.has(event.containerId)) found.push(event);
  }
  const states = new Map<string, Event>();
  return found.reverse().map((event) => {
    const before = event.kind === 'state' ? states.get(event.containerId) : undefined;
    if (event.kind === 'state') states.set(event.containerId, event);
    const ended =
      before === undefined
        ? null
        : {
            state: before.state ?? '',
            seconds: Math.round((Date.parse(event.at) - Date.parse(before.at)) / 1000),
          };
    return { ...event, site: sites.get(event.containerId) ?? '', ended };
  });
}

function render(shown: readonly ShownEvent[]): string {
  if (shown.length === 0) return 'no events in this time\n';
  const rows = shown.map(({ at, site, kind, state, status, reason, detail, ended, actor }) => [
    at.slice(0, 19).replace('T', ' '),
    site,
    kind === 'state' ? (state ?? '') : kind === 'status' ? status : kind,
    [
      ...(ended === null ? [] : [`was ${ended.state} for ${lasted(ended.seconds)}`]),
      ...[reason, detail].filter((text) => text !== null),
      ...(actor === null ? [] : [`by ${actor}`]),
    ].join('; '),
  ]);
  return table([header('TIME (UTC)', 'SITE', 'EVENT', 'WHY'), ...rows]);
}

function lasted(seconds: number): string {
  const [size, unit] = seconds < 120 ? [1, 's'] : seconds < 7_200 ? [60, 'min'] : [3_600, 'h'];
  return `${Math.round(seconds / size)} ${unit}`;
}
