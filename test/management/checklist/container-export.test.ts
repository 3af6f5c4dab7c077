import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { containerExport, judgeExport } from '../../../management/checklist/container-export.ts';
import { describeWith, REFERENCE } from '../../support/components.ts';

const EDGE = 'https://acme.tags.example';

const site = (unproven: string[] = []) => ({
  hostnames: { edge: 'acme.tags.example' },
  customDomains: ['data.acme.example'],
  domains: [{ domain: 'acme.example', webTagId: 'GTM-ABC1234' }],
  unproven,
});

function judge(containerVersion: object, unproven?: string[]) {
  const given = containerExport.parse({ exportFormatVersion: 2, containerVersion });
  const verdicts = judgeExport(given, site(unproven) as never); // only the members that it reads
  return Object.fromEntries(verdicts.map(({ id, ...verdict }) => [id, verdict]));
}

test.each([
  ['a proven custom domain', [], 'done'],
  ['one that is not proven, so that the edge doesn’t serve it', ['acme.example'], 'open'],
])('a tagging server URL at %s', (_what, unproven, state) => {
  const container = {
    publicId: 'GTM-SRV1234',
    usageContext: ['SERVER'],
    taggingServerUrls: ['https://data.acme.example'],
  };
  expect(judge({ container }, unproven)).toMatchObject({ tagging_server_url: { state } });
});

test('an export of a server container that has no setting for URLs leaves that point unknown', () => {
  const container = { publicId: 'GTM-SRV1234', usageContext: ['SERVER'] };
  const dataClient = [{ clientId: '36', name: 'Data Client', type: 'cvt_100000002_35', priority: 0 }];
  expect(judge({ container, client: dataClient })).toEqual({
    tagging_server_url: {
      state: 'unknown',
      detail: 'the export has no server container URLs; look at them in Tag Manager',
    },
    client_claims: { state: 'unknown', detail: 'the server container has clients, but none for GA4' },
  });
});

type Texts = Readonly<Record<string, string>>;

const text = (key: string, value: string) => ({ type: 'TEMPLATE', key, value });
const map = (texts: Texts) => ({
  type: 'MAP',
  map: Object.entries(texts).map(([key, value]) => text(key, value)),
});
const googleTag = (tagId: string | undefined, url?: string) => ({
  ...{ type: 'googtag', name: 'Google tag' },
  parameter: [
    ...(tagId === undefined ? [] : [text('tagId', tagId)]),
    ...(url === undefined
      ? []
      : [
          {
            ...{ type: 'LIST', key: 'configSettingsTable' },
            list: [map({ parameter: 'server_container_url', parameterValue: url })],
          },
        ]),
  ],
});
const custom = (...parameter: object[]) => ({ type: 'cvt_100000001_35', name: 'Data tag', parameter });
const constant = (name: string, value: string) => ({ type: 'c', name, parameter: [text('value', value)] });
const lookup = (name: string) => ({
  ...{ type: 'smm', name },
  parameter: [
    text('input', '{{Page Hostname}}'),
    { type: 'LIST', key: 'map', list: [map({ key: 'shop.example', value: EDGE })] },
  ],
});
const web = (tag: object[], more: object = {}) =>
  judge({ container: { publicId: 'GTM-ABC1234', usageContext: ['WEB'] }, tag, ...more }).google_tag;

test.each<[string, object[], object, string, string]>([
  [
    'a tag of Google Ads beside one of GA4',
    [googleTag('G-ABC1234567', EDGE), googleTag('AW-1234567890')],
    {},
    'done',
    'Google tags of GA4 that send to this container: 1 of 1',
  ],
  [
    'tags of Google Ads and Floodlight only',
    [googleTag('AW-1234567890'), googleTag('DC-1234567')],
    {},
    'open',
    'the web container has no Google tag of GA4',
  ],
  [
    'tags whose ids are constants',
    [googleTag('{{GA4}}', EDGE), googleTag('{{Ads}}')],
    { variable: [constant('GA4', 'G-ABC1234567'), constant('Ads', 'AW-1234567890')] },
    'done',
    'Google tags of GA4 that send to this container: 1 of 1',
  ],
  [
    'a tag without an address whose id may be one of Google Ads',
    [googleTag('GT-ABC1234')],
    {},
    'unknown',
    'Google tags without a server container URL that may be of GA4: 1 of 1',
  ],
  [
    'a tag without an address whose id only a page knows',
    [googleTag('{{Id}}'), googleTag('G-ABC1234567', EDGE)],
    { variable: [{ type: 'jsm', name: 'Id', parameter: [] }] },
    'unknown',
    'Google tags without a server container URL that may be of GA4: 1 of 2',
  ],
  [
    'the configuration of GA4 without an address',
    [{ type: 'gaawc', name: 'GA4', parameter: [text('measurementId', 'G-ABC1234567')] }],
    {},
    'open',
    'Google tags of GA4 without a server container URL: 1 of 1',
  ],
  [
    'Data Tags that send to this container',
    [custom(text('gtm_server_domain', '{{Server}}')), custom(text('standardEventName', 'PageView'))],
    { variable: [constant('Server', EDGE)] },
    'unknown',
    'the web container has no Google tag of GA4, but 1 other tag sends to this container',
  ],
  [
    'tags of templates, of which none shows where it sends',
    [custom(text('standardEventName', 'PageView'))],
    {},
    'unknown',
    'the web container has no Google tag of GA4; where its tags by templates and HTML send, the export doesn’t show',
  ],
  [
    'HTML that may have the Google tag',
    [{ type: 'html', name: 'gtag', parameter: [text('html', '<script>gtag()</script>')] }],
    {},
    'unknown',
    'the web container has no Google tag of GA4; where its tags by templates and HTML send, the export doesn’t show',
  ],
  [
    'events of GA4 whose Google tag is elsewhere',
    [{ type: 'gaawe', name: 'purchase', parameter: [text('eventName', 'purchase')] }],
    {},
    'unknown',
    'the web container has no Google tag of GA4, but events of GA4; their Google tag may be in the pages',
  ],
  [
    'a zone that loads another container',
    [],
    { zone: [{ zoneId: '1', name: 'Agency', childContainer: [{ publicId: 'GTM-XYZ1234' }] }] },
    'unknown',
    'the web container has no Google tag of GA4; the containers of its zones may have it',
  ],
  [
    'a constant of a constant, within a text',
    [googleTag('G-ABC1234567', 'https://{{Host}}/')],
    { variable: [constant('Host', '{{ Env host }}'), constant('Env host', 'acme.tags.example')] },
    'done',
    'Google tags of GA4 that send to this container: 1 of 1',
  ],
  [
    'constants that name each other',
    [googleTag('G-ABC1234567', '{{A}}')],
    { variable: [constant('A', '{{B}}'), constant('B', '{{A}}')] },
    'unknown',
    'Google tags whose server container URL only a page can compute: 1 of 1',
  ],
  [
    'an address in a lookup table, which only a page can look up',
    [googleTag('G-ABC1234567', '{{Server}}')],
    { variable: [lookup('Server')] },
    'unknown',
    'Google tags whose server container URL only a page can compute: 1 of 1',
  ],
  [
    'a settings variable that is a lookup table, which only a page can compute',
    [{ type: 'googtag', parameter: [text('tagId', 'G-ABC1'), text('configSettingsVariable', '{{S}}')] }],
    { variable: [lookup('S')] },
    'unknown',
    'Google tags whose server container URL only a page can compute: 1 of 1',
  ],
])('a web container with %s', (_what, tags, more, state, detail) => {
  expect(web(tags, more)).toEqual({ state, detail });
});

test('the words of Tag Manager’s API are read like those of an export', () => {
  const given = {
    container: { publicId: 'GTM-ABC1234', usageContext: ['web'] },
    tag: [googleTag('G-ABC1234567', '{{Server}}')],
    variable: [constant('Server', EDGE)],
  };
  const lower = JSON.parse(
    JSON.stringify(given)
      .replaceAll('"TEMPLATE"', '"template"')
      .replaceAll('"LIST"', '"list"')
      .replaceAll('"MAP"', '"map"'),
  );
  expect(judge(lower)).toMatchObject({ google_tag: { state: 'done' }, ids_agree: { state: 'done' } });
});

test.each([
  ['a file of something else', { name: 'x' }, 'containerVersion'],
  ['a version as the API answers it', { container: { publicId: 'GTM-A' }, tag: [] }, 'containerVersion'],
  ['no list of kinds', { containerVersion: { container: {} } }, 'containerVersion.container.usageContext'],
])('%s is refused with what to send', (_what, given, path) => {
  const { error } = containerExport.safeParse(given);
  expect(error?.issues.map((issue) => issue.path.join('.'))).toContain(path);
  expect(error?.issues.map(({ message }) => message)).toContain(
    'is missing: send the file that Tag Manager’s Admin, Export container saves',
  );
});

describeWith('reference', 'an export as people have it', () => {
  test.each([
    [
      'gtm-server-dataclient',
      { tagging_server_url: { state: 'unknown' }, client_claims: { state: 'unknown' } },
    ],
    // The tag of Google Ads isn't asked for a URL.
    ['gtm-web-ads-tag-without-url', { google_tag: { detail: expect.stringContaining('1 of 1') } }],
    [
      'gtm-web-datatag-only',
      { google_tag: { state: 'unknown', detail: expect.stringContaining('templates') } },
    ],
  ])('%s is judged by what it shows', (name, verdicts) => {
    const text = readFileSync(new URL(`samples/${name}.json`, REFERENCE), 'utf8');
    expect(judge(JSON.parse(text).containerVersion)).toMatchObject(verdicts);
  });
});
