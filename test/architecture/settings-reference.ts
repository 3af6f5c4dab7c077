import { z } from 'zod';
import { containersSettings } from '../../gitops/appliers/containers/settings.ts';
import { dnsSettings } from '../../gitops/appliers/dns/settings.ts';
import { edgeSettings } from '../../gitops/appliers/edge/settings.ts';
import { networkSettings } from '../../gitops/appliers/network/settings.ts';
import { proxySettings } from '../../gitops/appliers/proxy/settings.ts';
import { clusterSettings, machineSettings, sharedSettings } from '../../gitops/env.ts';
import { kubernetesSettings } from '../../gitops/kubernetes/applier/settings.ts';
import { gatewaySettings } from '../../gitops/kubernetes/gateway/env.ts';
import { environment } from '../../management/env.ts';
import { commandSettings, instanceSettings } from './command-settings.ts';
import { TEST_SETTINGS } from './test-settings.ts';
import { files } from './tree.ts';

interface Setting {
  readonly meaning: string;
  readonly byDefault: string;
  readonly form: string;
}
type Settings = ReadonlyMap<string, Setting>;

const INTRO = `# Settings

<!-- Written by \`npm run generate:settings\` from the schemas of the settings. -->

Settings are environment variables; those of the workers are variables of wrangler, their secrets its secrets.
[\`.env.example\`](../../.env.example) has those that a person decides for production. \`npm start\` (one machine, embedded
parts) needs none; its parts read those that are set, except the addresses, secrets and paths that it makes itself. A
list is separated by commas.
`;

/** Further settings that parts read of others, as secrets or for the commands. */
const ALSO: Readonly<Record<string, readonly string[]>> = {
  'Command line': [
    ...[
      'TAGYARD_HOME',
      'INFRA_PROVISIONER_URL',
      'INFRA_SECRET',
      ...['INFRA_READ_TOKEN', 'PROVISIONER_ADDRESS', 'PROVISIONER_PORT'],
      'VERIFICATION_WORKER_URL',
      'VERIFICATION_SECRET',
    ],
    ...['CLOUDFLARE_ACCOUNT_ID', 'CLOUDFLARE_API_TOKEN', 'CLOUDFLARE_API_URL'],
  ],
  'Edge worker': ['HOP_SECRET', 'HOP_SECRET_PREVIOUS', 'INGEST_SECRET'],
  'Verification worker': ['VERIFICATION_SECRET', 'HOP_SECRET'],
};

/** The reference of all settings: docs/reference/settings.md. */
export function settingsReference(): string {
  const parts: readonly (readonly [part: string, settings: Settings])[] = [
    ['Instance on one machine', settingsOf(instanceSettings)],
    ['Command line', settingsOf(commandSettings)],
    ['Provisioner', settingsOf(sharedSettings)],
    ['Provisioner on a machine', settingsOf(machineSettings, sharedSettings)],
    ['Networks of a machine', settingsOf(networkSettings)],
    ['Containers of a machine', settingsOf(containersSettings)],
    ['Proxy of a machine', settingsOf(proxySettings)],
    [
      'Provisioner for a cluster',
      new Map([...settingsOf(kubernetesSettings), ...settingsOf(clusterSettings, sharedSettings)]),
    ],
    ['DNS', settingsOf(dnsSettings)],
    ['Routes of the edge', settingsOf(edgeSettings)],
    ['Management', settingsOf(environment)],
    ['Gateway of a cluster', settingsOf(gatewaySettings)],
    ['Edge worker', variablesOf('wrangler.jsonc')],
    ['Verification worker', variablesOf('edge/verification/wrangler.jsonc')],
    [
      'Tests and bench',
      new Map(
        Object.entries(TEST_SETTINGS).map(([name, meaning]) => [
          name,
          { meaning, byDefault: '–', form: 'text' },
        ]),
      ),
    ],
  ];
  const explained = parts.map(([part, settings]) => {
    const rows = [...settings].flatMap(([name, setting]) => {
      const [owner] = parts.find((one) => one[1].get(name)?.meaning) ?? [];
      if (owner === undefined) throw new Error(`${name} of ${part} has no description`);
      return owner === part
        ? [
            rowOf(
              name,
              setting,
              parts.filter(([other]) => other !== part),
            ),
          ]
        : [];
    });
    return `\n## ${part}\n\n| setting | meaning | default | form |\n|---|---|---|---|\n${rows.join('\n')}\n`;
  });
  return INTRO + explained.join('');
}

function rowOf(name: string, own: Setting, others: readonly (readonly [string, Settings])[]): string {
  const also = others.filter(([part, settings]) => settings.has(name) || ALSO[part]?.includes(name));
  const differing = also.flatMap(([part, settings]) => {
    const byDefault = settings.get(name)?.byDefault ?? own.byDefault;
    return byDefault === own.byDefault ? [] : [`${part}: ${byDefault}`];
  });
  const readers = also.length === 0 ? '' : ` Also read by: ${also.map(([part]) => part).join(', ')}.`;
  const cells = [
    `\`${name}\``,
    marked(own.meaning + readers),
    [own.byDefault, ...differing].join('; '),
    own.form,
  ];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

/** Names of settings as code, and documents as links. */
function marked(text: string): string {
  const plain = (part: string) =>
    part
      .replaceAll('’', "'")
      .replace(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g, '`$&`')
      .replace(/\bdocs\/([\w-]+\.md)/g, '[docs/$1](../$1)');
  return text
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? part : plain(part)))
    .join('');
}

/** The settings of a schema, without those of another. */
function settingsOf(schema: z.ZodObject, without?: z.ZodObject): Settings {
  const shape = Object.entries(schema.shape).filter(([name]) => without?.shape[name] === undefined);
  return new Map(shape.map(([name, field]) => [name, settingOf(field as z.ZodType)]));
}

function settingOf(field: z.ZodType): Setting {
  const [output, input] = (['output', 'input'] as const).map((io) =>
    z.toJSONSchema(field, { io, unrepresentable: 'any' }),
  );
  const unset = field.safeParse(undefined);
  const fallback = defaultOf(field) ?? '';
  const known = typeof fallback === 'object' ? Object.values(fallback).join(',') : String(fallback);
  return {
    meaning: field.description ?? '',
    byDefault: unset.success ? written(known) : 'required',
    form: Array.isArray(unset.data) && !known.startsWith('[') ? 'list' : formOf(output) || formOf(input),
  };
}

const written = (value: string) => (value === '' ? '–' : `\`${value}\``);

/** The default of a schema, before it is transformed. */
function defaultOf(schema: z.core.$ZodType): unknown {
  const { def } = schema._zod as z.core.$ZodTypes['_zod'];
  if (def.type === 'default' || def.type === 'prefault') return def.defaultValue;
  return def.type === 'pipe' ? defaultOf(def.in) : undefined;
}

const FORMATS: Readonly<Record<string, string>> = { uri: 'URL', ipv4: 'IPv4 address', ipv6: 'IPv6 address' };

function formOf(schema: z.core.JSONSchema._JSONSchema | undefined): string {
  if (typeof schema !== 'object') return '';
  const { type, minimum: least, exclusiveMinimum: above, maximum } = schema;
  if (schema.anyOf) return [...new Set(schema.anyOf.map(formOf))].join(' or ');
  if (schema.enum) return schema.enum.map((one) => `\`${one}\``).join(', ');
  if (type === 'boolean') return '`true`, `false`';
  if (type === 'string') return FORMATS[schema.format ?? ''] ?? 'text';
  if (type !== 'number' && type !== 'integer') return '';
  // JSON Schema has these bounds for each whole number.
  const most = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  const from = [
    least === undefined || least === Number.MIN_SAFE_INTEGER ? '' : `from ${least}`,
    above === undefined ? '' : `above ${above}`,
  ];
  const range = [...from, most === undefined ? '' : `to ${most}`].filter((bound) => bound !== '').join(' ');
  return `${type === 'integer' ? 'whole number' : 'number'} ${range}`.trim();
}

/** The variables of a wrangler.jsonc, each explained by the comment above it. */
function variablesOf(path: string): Settings {
  const [{ text } = { text: '' }] = files(path);
  const [, vars = ''] = /"vars": \{\n(.*?)\n {2}\}/s.exec(text) ?? [];
  const found = vars.matchAll(/((?: *\/\/ .*\n)+) *"(\w+)": "(.*)"/g);
  return new Map(
    [...found].map(([, comment = '', name = '', byDefault = '']) => {
      const meaning = comment
        .replace(/^ *\/\/ /gm, '')
        .trim()
        .replaceAll('\n', ' ');
      return [name, { meaning, byDefault: written(byDefault), form: 'text' }];
    }),
  );
}
