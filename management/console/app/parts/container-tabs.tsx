/** The tabs of a container with their names; the first one has the container's own address. */
const TABS = [
  ['', 'Overview'],
  ['domains', 'Domains'],
  ['traffic', 'Traffic'],
  ['requests', 'Requests'],
  ['settings', 'Settings'],
  ['history', 'History'],
] as const;
export type ContainerTab = (typeof TABS)[number][0];

/** The tab with this name in the address; the first one for any other. */
export function tabNamed(name: string | undefined): ContainerTab {
  return TABS.find(([tab]) => tab === name)?.[0] ?? '';
}

/** The tab that has each part. */
const PARTS: Readonly<Record<string, ContainerTab>> = {
  health: '',
  snippet: '',
  checklist: '',
  domains: 'domains',
  handover: 'domains',
  'same-origin': 'domains',
  verification: 'domains',
  settings: 'settings',
  keys: 'settings',
  danger: 'settings',
  history: 'history',
};

/** `undefined`: there is no such part. */
export function tabOfPart(part: string): ContainerTab | undefined {
  return Object.hasOwn(PARTS, part) ? PARTS[part] : undefined;
}

export function tabPath(id: string, tab: ContainerTab): string {
  return `/console/containers/${id}${tab === '' ? '' : `/${tab}`}`;
}

/** The tabs of a container, each a link. */
export function ContainerTabs({ id, current }: { id: string; current: ContainerTab }) {
  return (
    <nav class="parts" aria-label="Parts of the container">
      {TABS.map(([tab, name]) => (
        <a key={tab} href={tabPath(id, tab)} aria-current={tab === current ? 'page' : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}
