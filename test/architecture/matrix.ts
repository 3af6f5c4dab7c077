import { posix } from 'node:path';
import type { Row } from './rules.ts';

const ROOTS = ['**/main.ts', 'gitops/cli.ts', 'edge/worker.ts'];
/** Composition roots and list files: they import what is below them, so their imports don't count for their folder. */
const ROOT_FILES = [
  '**/main.ts',
  '{edge,edge/stage,edge/verification}/{worker,host,app}.ts',
  '{gitops,gitops/http,management}/{app,env,host,cli}.ts',
  'plugins/{index,document,all-texts}.ts',
  'gitops/appliers/index.ts',
];

export const isRoot = (path: string): boolean =>
  ROOT_FILES.some((pattern) => posix.matchesGlob(path, pattern));

const ANY_PACKAGE = ['npm/**', 'node/**'];
/** The requests and answers of the verification worker, and its client. */
const VERIFICATION = 'edge/verification/{client,contract}.ts';
/** What common blocking lists match. Manifests and management avoid such names, the verification worker reports them. */
const BLOCK_LISTS = 'edge/verification/block-lists.ts';
/** What a page's content security policy must allow. Management shows it, the verification worker compares. */
const PAGE_POLICY = 'edge/verification/content-security-policy.ts';
/** How long Safari keeps cookies. Management shows it for one domain, the verification worker for a site. */
const SAFARI = 'edge/verification/safari.ts';
/** When the renewal of a certificate is late: the worker, management and the host’s metrics say the same. */
const CERTIFICATE_LIFE = 'edge/verification/certificate-life.ts';
/** The headers that a client must not send. The edge and the host's proxy drop the same headers. */
const REQUEST_HEADERS = 'edge/http/request-headers.ts';
/** Which Workers routes match a request: the emulated edge selects by them, the host's report explains them. */
const ROUTE_PATTERNS = 'edge/front/route-patterns.ts';
const ZOD_MINI = 'npm/zod/mini';
/**
 * What a worker must not import: its runtime has no modules of Node, and the edge knows nothing of the parts behind it.
 */
const NOT_IN_A_WORKER = ['base/**', 'gitops/**', 'management/**', 'sites/**', 'test/**', 'node/**'];
/** The desired state: the manifest's schema, its repository, the bodies of requests; and what both daemons use. */
const CORE = ['base/**', 'sites/{manifest,repo,requests}/**'];

/** Who may import whom. The first row that matches applies; no source imports a root. */
export const MATRIX: readonly Row[] = [
  // Plugins: their own folder and the contract.
  { from: 'plugins/index.ts', may: ['plugins/contract.ts', 'plugins/*/index.ts'] },
  {
    from: 'plugins/all-texts.ts',
    may: ['plugins/texts.ts', 'plugins/*/texts.ts'],
    types: ['plugins/document.ts'],
  },
  { from: 'plugins/*/texts.ts', may: ['plugins/texts.ts'] },
  { from: 'plugins/document.ts', may: ['plugins/*/config.ts', ZOD_MINI] },
  { from: 'plugins/*.ts', may: ['plugins/*.ts', ZOD_MINI], never: ['plugins/index.ts'] },
  { from: 'plugins/*/config.ts', may: ['<own>/**', 'plugins/excepted-paths.ts', ZOD_MINI] },
  {
    from: 'plugins/*/**',
    may: [
      'plugins/{addresses,contract,consent,hits,parameters,paths,profile,purposes}.ts',
      '<own>/**',
      ZOD_MINI,
    ],
    types: ['plugins/document.ts'],
    because: 'the contract describes a site by the types of its documents',
  },

  // Edge: the contract and the documents; the workers import the list of plugins; the router imports itty-router.
  {
    from: 'edge/{host,host-control,bundle,bundle-cache,esbuild}.ts',
    may: ['edge/**', 'plugins/document.ts', ...ANY_PACKAGE],
    because: 'they bundle the worker and run it under Miniflare, in Node',
  },
  {
    from: 'edge/kit/**',
    may: ['<own>/**', 'edge/bundle.ts', 'node/**', 'npm/miniflare'],
    types: ['edge/logs/**', 'plugins/document.ts'],
    because: 'it writes the files of a new plugin, and runs it in workerd, in Node',
  },
  {
    from: 'edge/{worker,stage/worker}.ts',
    may: ['edge/**', 'plugins/**', ZOD_MINI, 'cloudflare/workers'],
    never: NOT_IN_A_WORKER,
    because: 'it is the composition root',
  },
  {
    from: 'edge/router.ts',
    may: ['edge/**', 'plugins/{contract,consent,document,profile}.ts', ZOD_MINI, 'npm/itty-router{,/**}'],
    never: [...ROOTS, ...NOT_IN_A_WORKER],
  },
  {
    from: 'edge/front/analytics.ts',
    may: ['edge/front/host-point.ts', 'npm/cloudflare-internal:workers'],
    because: 'it is a binding, made as the runtime makes its own ones',
  },
  {
    from: 'edge/http/bots.ts',
    may: ['npm/isbot', 'edge/base/bounded-map.ts'],
    because: 'it recognises bots by a library whose list is kept up to date',
  },
  {
    from: 'edge/**',
    may: [
      'edge/**',
      'plugins/{contract,consent,document,profile,purposes}.ts',
      ZOD_MINI,
      'cloudflare/workers',
    ],
    types: ['npm/itty-router{,/**}'],
    never: ['edge/{host,bundle,worker}.ts', ...NOT_IN_A_WORKER],
  },

  { from: 'base/**', may: ['base/**', ...ANY_PACKAGE], never: ROOTS },
  {
    from: 'sites/{manifest,repo,requests}/**',
    may: [...CORE, 'plugins/{document,paths}.ts', 'plugins/*/config.ts', BLOCK_LISTS, ...ANY_PACKAGE],
    types: [VERIFICATION],
    never: ROOTS,
  },
  {
    from: 'sites/local/cloudflare/main.ts',
    may: ['base/**', 'sites/local/**', 'edge/host.ts', ...ANY_PACKAGE],
    never: ROOTS,
    because: 'on one machine the emulator starts the edge: the worker reads the KV of the emulator',
  },
  {
    from: 'sites/**',
    may: ['base/**', 'sites/**', ...ANY_PACKAGE],
    never: ROOTS,
  },

  // Gitops: what it imports of other parts of the tree; the order of its own folders is in floors.ts.
  {
    from: 'gitops/**/{plan,desired,guards,policy,render,quote,commands,documents,direct-headers}.ts',
    may: [
      'gitops/**/{plan,desired,guards,policy,render,quote,commands,documents,contract,ownership,canonical-json,direct-headers}.ts',
      'base/{canonical-json,errors,foreign-addresses,ownership,text}.ts',
      'gitops/report/approvable.ts',
      'sites/manifest/{certificate-check,containers,documents,schema}.ts',
      REQUEST_HEADERS,
      'npm/{handlebars,tldts,zod}',
      // Only those modules of Node that compute: isIP, joined paths, hashes.
      'node/{net,path,crypto}',
    ],
    types: ['base/**', 'sites/manifest/**', 'gitops/**', 'plugins/document.ts'],
    never: ['gitops/clients/**', ...ROOTS],
  },
  {
    from: 'gitops/appliers/*/**',
    may: [
      '<own>/**',
      'gitops/appliers/{contract,followed-destination,plan,registration}.ts',
      'base/**',
      'sites/manifest/**',
      'gitops/{clients,kubernetes/delivery}/**',
      'gitops/report/runbooks.ts',
      'plugins/document.ts',
      ...ANY_PACKAGE,
    ],
    types: ['gitops/report/quotas.ts'],
    never: ROOTS,
  },
  {
    from: '{gitops/cli.ts,gitops/cli/**}',
    may: [
      ...CORE,
      'gitops/**',
      'sites/local/**',
      'plugins/document.ts',
      'edge/kit/render.ts',
      VERIFICATION,
      ...ANY_PACKAGE,
    ],
    never: ROOTS,
    because: 'it is a root: it starts an instance of all parts',
  },
  {
    from: 'gitops/{host,main.ts}{,/**}',
    may: [
      ...CORE,
      'sites/local/**',
      'gitops/**',
      'plugins/document.ts',
      'plugins/*/config.ts',
      ROUTE_PATTERNS,
      ...ANY_PACKAGE,
    ],
    never: ['gitops/cli/**', ...ROOTS],
    because: 'a host without real ones has authorities of its own',
  },
  {
    from: 'gitops/**',
    may: [
      ...CORE,
      'gitops/**',
      'plugins/document.ts',
      'plugins/*/config.ts',
      ROUTE_PATTERNS,
      CERTIFICATE_LIFE,
      ...ANY_PACKAGE,
    ],
    types: [VERIFICATION],
    never: ['gitops/cli/**', ...ROOTS],
  },

  {
    from: 'management/console/app/**',
    may: [
      'management/console/app/**',
      'base/client/**',
      'base/host-name.ts',
      'management/http/export-forms.ts',
      'npm/{preact,@preact/signals,preact-iso,uplot,diff}{,/**}',
    ],
    because:
      'it runs in browsers, and knows the API only by its client; its CSV exports have the API’s form, and hosts that of the command line',
  },
  {
    from: 'management/console/*.ts',
    may: ['<own>/**', 'management/http/**', 'edge/{bundle-cache,esbuild}.ts', ...ANY_PACKAGE],
    because: 'it bundles the console as the workers are bundled',
  },
  {
    from: 'management/**',
    may: [
      'management/**',
      ...CORE,
      'gitops/report/**',
      'gitops/clients/r2.ts',
      'plugins/{document,all-texts,purposes}.ts',
      'plugins/multi_domain/config.ts',
      'plugins/custom_loader/snippet.ts',
      VERIFICATION,
      BLOCK_LISTS,
      PAGE_POLICY,
      SAFARI,
      CERTIFICATE_LIFE,
      ...ANY_PACKAGE,
    ],
    never: ROOTS,
    because: 'the snippet that a person pastes is the loader’s own, and the API answers with it',
  },
  {
    from: 'deploy/**',
    may: ['deploy/**', 'edge/bundle.ts', 'management/console/build.ts', ...ANY_PACKAGE],
    never: ROOTS,
    because: 'it bundles the workers and the console into the package',
  },
];
