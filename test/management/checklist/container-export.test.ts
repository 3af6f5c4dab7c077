import { expect, test } from 'vitest';
import { containerExport, judgeExport } from '../../../management/checklist/container-export.ts';

const site = (unproven: string[]) => ({
  hostnames: { edge: 'acme.tags.example' },
  customDomains: ['data.acme.example'],
  domains: [],
  unproven,
});

test.each([
  ['a proven custom domain', [], 'done'],
  ['one that is not proven, so that the edge doesn’t serve it', ['acme.example'], 'open'],
])('a tagging server URL at %s', (_what, unproven, state) => {
  const given = containerExport.parse({
    exportFormatVersion: 2,
    containerVersion: {
      container: {
        publicId: 'GTM-SRV1234',
        usageContext: ['SERVER'],
        taggingServerUrls: ['https://data.acme.example'],
      },
    },
  });
  const [verdict] = judgeExport(given, site(unproven) as never); // only the members that it reads
  expect(verdict).toMatchObject({ id: 'tagging_server_url', state });
});
