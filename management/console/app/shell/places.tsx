import { me } from '../data/session.ts';

interface Place {
  readonly path: string;
  readonly name: string;
  /** The path of its icon, in a square of 16. */
  readonly icon: string;
}

interface Group {
  readonly name: string;
  readonly places: readonly Place[];
}

/** The screens in the groups and the order of the navigation. */
const GROUPS: readonly Group[] = [
  {
    name: 'Sites',
    places: [
      { path: '/console', name: 'Overview', icon: 'M2 2h5v6H2zM9 2h5v4H9zM2 10h5v4H2zM9 8h5v6H9z' },
      {
        path: '/console/containers',
        name: 'Containers',
        icon: 'M8 1.5 14 5v6l-6 3.5L2 11V5zM2 5l6 3.5L14 5M8 8.5v6',
      },
      { path: '/console/requests', name: 'Requests', icon: 'M2 5h11M10 2l3 3-3 3M14 11H3M6 8l-3 3 3 3' },
      { path: '/console/usage', name: 'Usage', icon: 'M2 14h12M4 14V9M8 14V3M12 14V6' },
    ],
  },
  {
    name: 'People',
    places: [
      {
        path: '/console/clients',
        name: 'Clients',
        icon: 'M2 14V3l6-1v12M8 6h6v8M2 14h12M5 5v0M5 8v0M11 9v0',
      },
      {
        path: '/console/organisations',
        name: 'Organisations',
        icon: 'M6 2h4v4H6zM2 10h4v4H2zM10 10h4v4h-4zM8 6v2M4 10V8h8v2',
      },
      { path: '/console/audit', name: 'Audit', icon: 'M3 1.5h7l3 3v10H3zM6 7h4M6 10h4' },
    ],
  },
  {
    name: 'Connect',
    places: [
      {
        path: '/console/tokens',
        name: 'Tokens',
        icon: 'M10.5 2a3.5 3.5 0 1 1-3 5.3L2 13v1h2v-2h2v-2M11 5v0',
      },
      { path: '/console/webhooks', name: 'Webhooks', icon: 'M8 2v5M8 7l-5 6h10zM3 13v0M13 13v0' },
      { path: '/docs', name: 'API', icon: 'M5 4 1.5 8 5 12M11 4l3.5 4-3.5 4M9.5 2.5l-3 11' },
    ],
  },
  {
    name: 'Instance',
    places: [
      { path: '/console/changes', name: 'Changes', icon: 'M8 1v4M8 11v4M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6' },
      { path: '/console/plans', name: 'Plans', icon: 'M2 4l1 1 2-2M2 9l1 1 2-2M7 4h7M7 9h7M7 13h7' },
      {
        path: '/console/drift',
        name: 'Drift',
        icon: 'M1.5 6c2-3 4-3 6.5 0s4.5 3 6.5 0M1.5 11c2-3 4-3 6.5 0s4.5 3 6.5 0',
      },
      { path: '/console/hosts', name: 'Hosts', icon: 'M2 2h12v5H2zM2 9h12v5H2zM4.5 4.5v0M4.5 11.5v0' },
      { path: '/console/rollouts', name: 'Rollouts', icon: 'M8 14V5M4.5 8 8 4.5 11.5 8M3 2h10' },
    ],
  },
];

/** Also people who are no operators see what was changed. */
const FOR_ALL = '/console/changes';

export function visibleGroups(): readonly Group[] {
  if (me().isOperator) return GROUPS;
  return GROUPS.map((group) =>
    group.name === 'Instance'
      ? { ...group, places: group.places.filter(({ path }) => path === FOR_ALL) }
      : group,
  );
}

export function Icon({ path }: { path: string }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}
