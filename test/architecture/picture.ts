import { instance } from '@viz-js/viz';
import { type Arrow, arrowsOf } from './graph.ts';
import type { SourceFile } from './source.ts';

/** Parts of the tree from the top of the picture down, each with the colour of its frame. */
const PARTS = [
  ['gitops', '#2563eb'],
  ['management', '#7c3aed'],
  ['edge', '#059669'],
  ['plugins', '#d97706'],
  ['sites', '#64748b'],
] as const;

/**
 * Files directly in a part's folder form its 'roots' room. Exceptions: `plugins/contract.ts`, which other parts import, has
 * a room of its own; `gitops/appliers/index.ts`, the list of appliers, counts as a root of gitops.
 */
const OWN_ROOMS: Readonly<Record<string, string>> = {
  'plugins/contract.ts': 'plugins/contract',
  'gitops/appliers/index.ts': 'gitops',
};

/** A folder of a part is a room. */
function roomOf(path: string): string {
  const [part = '', folder = ''] = path.split('/');
  return OWN_ROOMS[path] ?? (folder.endsWith('.ts') ? part : `${part}/${folder}`);
}

/** Imports between rooms, sorted; imports within a room are omitted. */
function roomArrows(files: readonly SourceFile[]): Arrow[] {
  const pairs = arrowsOf(files).map(({ from, to }) => `${roomOf(from)} ${roomOf(to)}`);
  return [...new Set(pairs)].sort().flatMap((pair) => {
    const [from = '', to = ''] = pair.split(' ');
    return from === to ? [] : [{ from, to }];
  });
}

/**
 * `from -> to` of the arrows to draw: if one room also reaches another through a third, the direct arrow is omitted
 * (transitive reduction), because a picture with all arrows is unreadable.
 */
export function drawnArrows(files: readonly SourceFile[]): string[] {
  const arrows = roomArrows(files);
  const targets = Map.groupBy(arrows, ({ from }) => from);
  const reaches = (from: string, to: string, seen: Set<string>): boolean =>
    (targets.get(from) ?? []).some((next) => {
      if (next.to === to) return true;
      if (seen.has(next.to)) return false;
      seen.add(next.to);
      return reaches(next.to, to, seen);
    });
  return arrows
    .filter(({ from, to }) => {
      const others = (targets.get(from) ?? []).filter((next) => next.to !== to);
      return !others.some((next) => reaches(next.to, to, new Set([from])));
    })
    .map(({ from, to }) => `${from} -> ${to}`);
}

/** The rooms and the imports between them as a graph for Graphviz. */
function graphOf(files: readonly SourceFile[]): string {
  const all = [...new Set(files.map(({ path }) => roomOf(path)))].sort();
  const clusters = PARTS.map(([part, colour]) => {
    const rooms = all
      .filter((room) => room === part || room.startsWith(`${part}/`))
      .map((room) => `"${room}" [label=<${labelOf(room)}>];`);
    return `subgraph "cluster_${part}" { label="${part}"; color="${colour}"; fontcolor="${colour}"; ${rooms.join(' ')} }`;
  });
  const colourOf = new Map<string, string>(PARTS);
  const arrows = drawnArrows(files).map((arrow) => {
    const [from = '', to = ''] = arrow.split(' -> ');
    return `"${from}" -> "${to}" [color="${colourOf.get(from.split('/')[0] ?? '') ?? '#000000'}"];`;
  });
  return `digraph {
    rankdir=TB; ranksep=0.55; nodesep=0.22; newrank=true; bgcolor="#ffffff";
    node [shape=box, style="rounded,filled", fillcolor="#f8fafc", color="#94a3b8", fontname="Helvetica", fontsize=12];
    edge [arrowsize=0.6, penwidth=0.8];
    graph [fontname="Helvetica", fontsize=14, style=rounded];
    ${clusters.join('\n')}
    ${arrows.join('\n')}
  }`;
}

function labelOf(room: string): string {
  const [part, folder] = room.split('/');
  return folder === undefined ? `<i>${part} roots</i>` : `<b>${folder}</b>`;
}

/** The picture of docs/architecture.md, as SVG. */
export async function drawRooms(files: readonly SourceFile[]): Promise<string> {
  const graphviz = await instance();
  return graphviz.renderString(graphOf(files), { format: 'svg', engine: 'dot' });
}

/** `from -> to` of the arrows that a picture shows: Graphviz writes each as the title of its group. */
export function arrowsIn(svg: string): string[] {
  return [...svg.matchAll(/<title>([^<]+?)&#45;&gt;([^<]+?)<\/title>/g)]
    .map(([, from, to]) => `${from} -> ${to}`.replaceAll('&#45;', '-'))
    .sort();
}
