import * as fc from 'fast-check';

/** The sites of a fuzzed instance. One is the start of another's name, one is all digits, one is as long as allowed. */
export const SITES = ['acme', 'acme-shop', '007', `long-${'x'.repeat(43)}`] as const;

/** What a file of the tree contains. */
export type Content =
  | {
      readonly of: 'manifest';
      readonly site: string;
      readonly change: ManifestChange;
      readonly other: string;
    }
  | { readonly of: 'hostile'; readonly number: number }
  | { readonly of: 'bytes'; readonly latin1: string; readonly times: number };

const MANIFEST_CHANGES = [
  'same',
  'renamed',
  'absent',
  'suspended',
  'switched off',
  'protected',
  'other host',
  'other version',
  'other client',
  'unknown key',
  'wrong site',
  'steals hostnames',
  'steals ports',
  'steals tokens',
  'steals container',
  'steals domains',
  'steals custom domain',
  'new token',
  'new hostname',
  'steals secret',
  'damaged secret',
  'UTF-16',
  'byte order mark',
  'no end',
] as const;
export type ManifestChange = (typeof MANIFEST_CHANGES)[number];

const MODES = ['100644', '100755', '120000', '160000'] as const;

/** One change of the tree. `path` is in Latin-1: each character is one byte. */
export type Edit =
  | {
      readonly op: 'put';
      readonly path: string;
      readonly mode: (typeof MODES)[number];
      readonly content: Content;
    }
  | { readonly op: 'delete'; readonly path: string }
  | { readonly op: 'move'; readonly from: string; readonly to: string };

const HISTORIES = ['reset', 'orphan', 'amend', 'revert', 'forget', 'hide', 'pack'] as const;
const DRIFTS = [
  'dns delete',
  'dns change',
  'kv delete',
  'kv change',
  'proxy delete',
  'proxy change',
] as const;
const OPERATIONS = [
  'suspend',
  'resume',
  'freeze',
  'thaw',
  'approve',
  'restart',
  'revert',
  'prune',
  'restore',
] as const;
const PARTS = ['management', 'provisioner', 'edge'] as const;

/**
 * One step. It describes its effect completely and is possible in every state of an instance, so that any selection of
 * recorded steps can run again.
 */
export type Step =
  | { readonly kind: 'tree'; readonly way: 'commit' | 'merge'; readonly edits: readonly Edit[] }
  | { readonly kind: 'history'; readonly how: (typeof HISTORIES)[number]; readonly back: number }
  | { readonly kind: 'drift'; readonly where: (typeof DRIFTS)[number]; readonly site: string }
  | { readonly kind: 'burst'; readonly what: 'webhooks' | 'tokens'; readonly isFresh?: true }
  | { readonly kind: 'leave'; readonly depth: number; readonly isFresh?: true }
  | {
      readonly kind: 'plan';
      /** Nothing can refuse what the step does: a step that then does nothing is a violation, too. */
      readonly isFresh?: true;
      readonly meanwhile: 'nothing' | 'another site' | 'this site';
      readonly site: string;
    }
  | { readonly kind: 'operate'; readonly what: (typeof OPERATIONS)[number]; readonly site: string }
  | {
      readonly kind: 'call';
      readonly part: (typeof PARTS)[number];
      readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
      readonly path: string;
      readonly body: string;
    };

const site = fc.constantFrom(...SITES);

/** Latin-1 of the UTF-8 bytes, as git stores a name. */
const utf8 = (text: string) => Buffer.from(text).toString('latin1');

/** A path in a tree: a site's own file (nearly half), a similar name, or an unusual one. */
const path = fc.oneof(
  { weight: 6, arbitrary: site.map((name) => `${name}.yaml`) },
  {
    weight: 6,
    arbitrary: fc
      .tuple(
        site,
        fc.constantFrom<(name: string) => string>(
          (name) => `${name}.yml`,
          (name) => `${name}.YAML`,
          (name) => `${name.toUpperCase()}.yaml`,
          (name) => `${name}.yaml.disabled`,
          (name) => `${name}.yaml~`,
          (name) => `.${name}.yaml.swp`,
          (name) => `${name}.yaml/inner`,
          (name) => `old/${name}.yaml`,
          (name) => `${'a/'.repeat(60)}${name}.yaml`,
          (name) => `${name} .yaml`,
          (name) => `${name}.yaml\n`,
          (name) => `${name}.yaml\xff`,
          (name) => `${name}\t"'\\.yaml`,
          (name) => utf8(`${name.replace('a', 'а')}.yaml`),
          (name) => utf8(`${name}\u202e.yaml`),
          (name) => `${name}.txt`,
        ),
      )
      .map(([name, form]) => form(name)),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '.gitmodules',
      '.gitattributes',
      '-rf',
      'yaml',
      '.yaml',
      'HEAD',
      'x'.repeat(255),
    ),
  },
);

const content = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .record({ site, change: fc.constantFrom(...MANIFEST_CHANGES), other: site })
      .map((value): Content => ({ of: 'manifest', ...value })),
  },
  { weight: 2, arbitrary: fc.nat(40).map((number): Content => ({ of: 'hostile', number })) },
  {
    weight: 2,
    arbitrary: fc
      .record({
        latin1: fc.constantFrom('', '\0', 'a', '\xff\xfe', '../acme.yaml', 'version: 1\n', '&a [*a]', '\r\n'),
        times: fc.constantFrom(1, 2, 1000, 300_000),
      })
      .map((value): Content => ({ of: 'bytes', ...value })),
  },
);

/** A manifest in its own site's file: most manifests in other files are refused at once. */
const ownManifest = fc.record({ name: site, change: fc.constantFrom(...MANIFEST_CHANGES), other: site }).map(
  ({ name, change, other }): Edit => ({
    op: 'put',
    path: `${name}.yaml`,
    mode: '100644',
    content: { of: 'manifest', site: name, change, other },
  }),
);

/** A link or submodule in place of a site's file: git still has something of that name. */
const hiding = site.chain((name) =>
  fc.constantFrom('120000' as const, '160000' as const).map(
    (mode): Edit => ({
      op: 'put',
      path: `${name}.yaml`,
      mode,
      content: { of: 'bytes', latin1: '../acme.yaml', times: 1 },
    }),
  ),
);

const edit: fc.Arbitrary<Edit> = fc.oneof(
  { weight: 5, arbitrary: ownManifest },
  { weight: 3, arbitrary: hiding },
  {
    weight: 7,
    arbitrary: fc.record({
      op: fc.constant('put' as const),
      path,
      mode: fc.constantFrom(...MODES),
      content,
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('delete' as const), path }) },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('move' as const),
      from: site.map((name) => `${name}.yaml`),
      to: path,
    }),
  },
);

const body = fc.oneof(
  fc.constantFrom('', '{}', '[]', 'null', '{"site":', '{"__proto__":{"a":1}}', `{"a":${'['.repeat(5000)}`),
  fc.json({ maxDepth: 3 }),
  site.map((name) => JSON.stringify({ site: name, domain: `x.${name}-fuzz.example`, version: 1 })),
  fc.constant(JSON.stringify({ name: 'x'.repeat(100_000), domains: ['\u0000', '*', 'xn--a'] })),
);

const apiPath = fc.oneof(
  fc.constantFrom(
    '/server-containers',
    '/server-containers?limit=-1&after=%00',
    '/server-containers/not-an-id',
    '/clients',
    '/openapi.json',
    '/%',
    '/%2e%2e/%2e%2e/etc',
    '/provision',
    '/plan',
    '/diff',
    '/revert',
    '/custom-domain',
    '/sites/%ff',
    '/operations/x',
    '/g/collect?tid=%00',
    '/boot',
    '/l/x.js',
  ),
  site.map((name) => `/sites/${name}`),
);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('burst' as const),
      what: fc.constantFrom('webhooks' as const, 'tokens' as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('leave' as const), depth: fc.integer({ min: 1, max: 4 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('plan' as const),
      meanwhile: fc.constantFrom('nothing' as const, 'another site' as const, 'this site' as const),
      site,
    }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('tree' as const),
      way: fc.constantFrom('commit' as const, 'commit' as const, 'merge' as const),
      edits: fc.array(edit, { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('history' as const),
      how: fc.constantFrom(...HISTORIES),
      back: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('drift' as const), where: fc.constantFrom(...DRIFTS), site }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('operate' as const),
      what: fc.constantFrom(...OPERATIONS),
      site,
    }),
  },
  // Without it, most sites of a long run would be removed, suspended or invalid.
  {
    weight: 4,
    arbitrary: site.map((name): Step => ({ kind: 'operate', what: 'restore', site: name })),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('call' as const),
      part: fc.constantFrom(...PARTS),
      method: fc.constantFrom(
        'GET' as const,
        'POST' as const,
        'PATCH' as const,
        'PUT' as const,
        'DELETE' as const,
      ),
      path: apiPath,
      body,
    }),
  },
);

/** The first steps of this seed. The same seed gives the same steps; a larger `count` only adds more. */
export const stepsOf = (seed: number, count: number): Step[] => fc.sample(step, { seed, numRuns: count });
