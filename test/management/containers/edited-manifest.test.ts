import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import { expect, test } from 'vitest';
import { editedManifest } from '../../../management/containers/change.service.ts';
import type { Tables } from '../../../management/db/database.ts';
import { ManagementProblem } from '../../../management/http/errors.ts';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { type ManifestInput, manifestSchema } from '../../../sites/manifest/schema.ts';
import { manifestInput } from '../../support/manifest.ts';

// Without proofs of domains, an edit reads nothing from the database.
const db = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (empty) => new PostgresIntrospector(empty),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});

const FOREIGN = 'metrics.elsewhere.example';
const foreignMessage = `${FOREIGN} is not under the registrable part of any of the site's domains`;

test.each<[string, Partial<ManifestInput>, object]>([
  [
    'a foreign custom domain beside another fault is named as such',
    { ports: { processing: 20000, preview: 20000 }, customDomains: ['metrics.acme-shop.example', FOREIGN] },
    {
      code: 'foreign_domain',
      detail: foreignMessage,
      errors: [
        { path: 'ports.preview', message: 'must differ from ports.processing' },
        { path: 'customDomains.1', message: foreignMessage },
      ],
    },
  ],
  [
    'custom domains aren’t judged where a value has a wrong type',
    { name: null as never, customDomains: [FOREIGN] }, // a wrong type, which the compiler would refuse
    { code: 'invalid_request', errors: [{ path: 'name' }] },
  ],
])('%s', async (_what, extra, refusal) => {
  const manifest = manifestSchema.parse(manifestInput());
  const container = {
    site_id: manifest.site,
    client_id: manifest.client,
    status: 'verified',
    revision: null,
  } as const;
  const edit = () => manifestInput('acme-shop', 0, extra);
  const edited = editedManifest(
    { db, settings: { domainProof: 'off' } },
    container,
    formatManifest(manifest),
    { edit },
  );
  const problem = await edited.catch((error: unknown) => error);
  if (!(problem instanceof ManagementProblem)) throw new Error('the edit wasn’t refused', { cause: problem });
  expect(problem.body('a-request')).toMatchObject(refusal);
});
