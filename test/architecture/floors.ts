import type { Floor } from './graph.ts';

/**
 * The rooms of each part by floor, the lowest first: a file imports only files of its own room, or of a lower floor
 * (docs/architecture.md). What one part may import of another is in `matrix.ts`.
 */
export const FLOORS: Readonly<Record<'gitops' | 'management' | 'edge', readonly Floor[]>> = {
  gitops: [
    { number: 0, rooms: ['gitops/base/**'] },
    { number: 1, rooms: ['gitops/manifest/**', 'gitops/clients/**'] },
    { number: 2, rooms: ['gitops/sites-repo/**', 'gitops/report/**'] },
    { number: 3, rooms: ['gitops/desired/**'] },
    { number: 9, rooms: ['gitops/appliers/index.ts'] },
    { number: 4, rooms: ['gitops/appliers/**'] },
    { number: 5, rooms: ['gitops/certificates/**', 'gitops/host-report/**', 'gitops/embedded/**'] },
    { number: 6, rooms: ['gitops/pass/**'] },
    { number: 7, rooms: ['gitops/loop/**'] },
    { number: 8, rooms: ['gitops/http/**'] },
    { number: 10, rooms: ['gitops/env.ts'] },
    { number: 11, rooms: ['gitops/host.ts'] },
    { number: 12, rooms: ['gitops/cli/**'] },
    { number: 13, rooms: ['gitops/main.ts', 'gitops/cli.ts'] },
  ],
  management: [],
  edge: [],
};
