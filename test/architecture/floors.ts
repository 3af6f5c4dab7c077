import type { Floor } from './graph.ts';

/**
 * The rooms of each part by floor; the first that matches a file is its room. It imports only its room and lower floors
 * (docs/architecture.md). What one part may import of another is in `matrix.ts`.
 */
export const FLOORS: Readonly<Record<'sites' | 'gitops' | 'management' | 'edge', readonly Floor[]>> = {
  sites: [
    { number: 0, rooms: ['sites/manifest/**'] },
    { number: 1, rooms: ['sites/repo/**', 'sites/requests/**'] },
    { number: 2, rooms: ['sites/local/**'] },
  ],
  gitops: [
    { number: 0, rooms: ['gitops/clients/**'] },
    { number: 1, rooms: ['gitops/kubernetes/client/**'] },
    { number: 2, rooms: ['gitops/report/**', 'gitops/kubernetes/delivery/**'] },
    { number: 3, rooms: ['gitops/desired/**', 'gitops/container-logs/**'] },
    { number: 9, rooms: ['gitops/appliers/index.ts'] },
    { number: 4, rooms: ['gitops/appliers/**'] },
    { number: 5, rooms: ['gitops/certificates/**', 'gitops/host-report/**'] },
    { number: 5, rooms: ['gitops/kubernetes/applier/**', 'gitops/kubernetes/gateway/**'] },
    { number: 6, rooms: ['gitops/pass/**'] },
    { number: 7, rooms: ['gitops/loop/**'] },
    { number: 8, rooms: ['gitops/http/**'] },
    { number: 10, rooms: ['gitops/env.ts'] },
    { number: 11, rooms: ['gitops/host/**'] },
    { number: 12, rooms: ['gitops/cli/**'] },
    { number: 13, rooms: ['gitops/main.ts', 'gitops/cli.ts'] },
  ],
  management: [
    { number: 0, rooms: ['management/lifecycle/**', 'management/snippets/**'] },
    { number: 1, rooms: ['management/db/**', 'management/clients/**', 'management/raw-objects/**'] },
    { number: 2, rooms: ['management/http/**', 'management/records/**', 'management/ports/**'] },
    { number: 3, rooms: ['management/access/**', 'management/context/**'] },
    { number: 4, rooms: ['management/view/**', 'management/proof/**'] },
    {
      number: 5,
      rooms: [
        'management/audit/**',
        'management/bulk/**',
        'management/console/**',
        'management/container-logs/**',
        'management/containers/**',
        'management/domains/**',
        'management/events/**',
        'management/instance/**',
        'management/operations/**',
        'management/plugins/**',
        'management/requests/**',
        'management/policies/**',
        'management/session/**',
        'management/sites/**',
        'management/tenants/**',
        'management/tokens/**',
        'management/traffic/**',
        'management/verification/**',
        'management/webhooks/**',
      ],
    },
    {
      number: 6,
      rooms: [
        'management/audit.ts',
        'management/checklist/**',
        'management/env.ts',
        'management/handover/**',
        'management/health.routes.ts',
        'management/idempotent.ts',
        'management/if-match.ts',
        'management/metrics.ts',
        'management/prepare.ts',
        'management/retention.ts',
        'management/rollouts/**',
      ],
    },
    { number: 7, rooms: ['management/app.ts', 'management/preflight.ts'] },
    { number: 8, rooms: ['management/api-document.ts'] },
    {
      number: 9,
      rooms: ['management/main.ts', 'management/write-api-types.ts', 'management/write-roles.ts'],
    },
  ],
  edge: [
    { number: 0, rooms: ['edge/base/**', 'edge/logs/**', 'edge/front/**'] },
    { number: 0, rooms: ['edge/claims.ts', 'edge/consent.ts'] },
    { number: 1, rooms: ['edge/http/**', 'edge/stores/**', 'edge/gate.ts', 'edge/router.ts'] },
    { number: 2, rooms: ['edge/guard.ts'] },
    { number: 3, rooms: ['edge/dispatch.ts', 'edge/site.ts'] },
    { number: 4, rooms: ['edge/{context,request-members}.ts'] },
    { number: 5, rooms: ['edge/app.ts'] },
    // The verification worker and the tools that run in Node import, of the rooms above, only floor 0.
    {
      number: 0,
      rooms: [
        'edge/verification/{block-lists,certificate-life,check,client,content-security-policy,contract,errors,result,safari,visit}.ts',
      ],
    },
    { number: 1, rooms: ['edge/verification/checks/**'] },
    { number: 0, rooms: ['edge/{bundle-cache,esbuild}.ts'] },
    { number: 1, rooms: ['edge/bundle.ts', 'edge/host-control.ts'] },
    { number: 2, rooms: ['edge/kit/**'] },
    { number: 6, rooms: ['edge/{worker,stage/worker,verification/worker,host}.ts'] },
  ],
};
