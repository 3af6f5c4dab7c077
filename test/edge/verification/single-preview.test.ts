import { expect, test } from 'vitest';
import { checkSinglePreview } from '../../../edge/verification/checks/preview.ts';
import type { HostReport } from '../../../edge/verification/contract.ts';

const site = {
  siteId: 'acme',
  edge: 'https://acme.tags.example.net',
  origin: 'https://acme-origin.tags.example.net',
  preview: 'https://acme-preview.tags.example.net',
  customDomains: [],
  loaderToken: 'lt_1',
  domains: [],
  proxyPaths: [],
};
const config = { id: null, problem: null };
const host = { host: 'tag-1', site, config, names: [], certificates: [], arrivals: [] };

test.each<[HostReport['previews'], string, string | null]>([
  [{ count: 1, problem: null }, 'one preview server runs', null],
  [{ count: 0, problem: null }, '0 preview servers run', 'why it doesn’t start'],
  [{ count: 2, problem: null }, '2 preview servers run', 'removes what isn’t wanted'],
  [{ count: null, problem: 'no answer from Docker' }, 'counted: no answer from Docker', 'verify again'],
])('%j: %s; fix: %s', (previews, detail, fix) => {
  expect(checkSinglePreview({ host: { ...host, previews } })).toEqual([
    {
      subject: null,
      status: fix === null ? 'passed' : 'failed',
      detail: expect.stringContaining(detail),
      fix: fix === null ? null : expect.stringContaining(fix),
    },
  ]);
});
