import { expect, test } from 'vitest';
import { checkDns } from '../../../edge/verification/checks/names.ts';
import type { HostReport } from '../../../edge/verification/contract.ts';

const CUSTOM = 'metrics.acme.example';
const NOW = Date.parse('2026-06-01T00:00:00Z');

function fixFor(certificate: Partial<HostReport['certificates'][number]>): string | null | undefined {
  const site = {
    siteId: 'acme',
    edge: 'https://acme.tags.example.net',
    origin: 'https://acme-origin.tags.example.net',
    preview: 'https://acme-preview.tags.example.net',
    customDomains: [`https://${CUSTOM}`],
    loaderToken: 'lt',
    domains: [],
    proxyPaths: [],
  };
  const name = { registrable: null, alias: null, aliasRegistrable: null, problem: null };
  const host: HostReport = {
    host: 'tag-1',
    site,
    config: { id: null, problem: null },
    previews: { count: 1, problem: null },
    names: [
      { ...name, name: CUSTOM, kind: 'custom', addresses: ['198.51.100.7'], expected: ['203.0.113.7'] },
    ],
    certificates: [
      { name: CUSTOM, validTo: '2026-08-01T00:00:00Z', covers: true, problem: null, ...certificate },
    ],
    arrivals: [],
  };
  const visit = () => Promise.reject(new Error('this check visits nothing'));
  const context = { site, host, hostProblem: null, visit, now: NOW, scriptsByPlace: false };
  const [finding] = checkDns(context);
  expect(finding?.status).toBe('failed');
  return finding?.fix;
}

test('a domain that leads elsewhere is ready to switch if the host answers with a valid certificate', () => {
  expect(fixFor({})).toContain('It is ready to switch');
  for (const lacking of [{ covers: false }, { validTo: null }, { validTo: '2026-05-31T00:00:00Z' }]) {
    expect(fixFor(lacking)).not.toContain('ready');
  }
});
