import { type Document, isMap, isNode, LineCounter, parseDocument, stringify } from 'yaml';
import type { core } from 'zod';
import { canonicalJson } from '../../base/canonical-json.ts';
import { counted, textProblem } from '../../base/text.ts';
import { refuseHostileYaml } from './limits.ts';
import type { Problem } from './problem.ts';
import {
  alwaysWritten,
  MANIFEST_VERSION,
  type Manifest,
  type ManifestInput,
  manifestSchema,
} from './schema.ts';
import { ALWAYS_ON_MESSAGE, ignoredSwitches } from './switches.ts';

export type ParsedManifest =
  | {
      readonly ok: true;
      readonly manifest: Manifest;
      /** Problems that are accepted because existing files may have them. A request with one is refused. */
      readonly warnings: readonly Problem[];
    }
  | {
      readonly ok: false;
      readonly reason: 'InvalidManifest' | 'UnsupportedVersion';
      readonly problems: readonly Problem[];
    };

/** The maximum number of problems that are reported of one manifest. */
const MAX_PROBLEMS = 20;
/** The maximum number of characters of a key or path that a problem shows. */
const MAX_SHOWN = 200;

/** Parses `<site>.yaml`; never throws. The name of the file must be the id of the site. */
export function parseManifest(text: string, file: string): ParsedManifest {
  const hostile = refuseHostileYaml(text);
  if (hostile !== null) return invalid([hostile]);

  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined) {
    return invalid([{ path: '', message: fault.message, line: lines.linePos(fault.pos[0]).line }]);
  }
  if (!isMap(document.contents)) {
    return invalid([{ path: '', message: 'must be a mapping of keys, see sites/example.yaml', line: 1 }]);
  }
  const version: unknown = document.get('version');
  if (typeof version === 'number' && version > MANIFEST_VERSION) {
    const message = `version ${version} is newer than this release understands (${MANIFEST_VERSION}); upgrade Tagyard first`;
    return {
      ok: false,
      reason: 'UnsupportedVersion',
      problems: [{ path: 'version', message, ...lineOf(document, lines, ['version']) }],
    };
  }
  const result = manifestSchema.safeParse(document.toJS());
  if (!result.success) return invalid(describeAll(result.error.issues, document, lines));
  const { site } = result.data;
  if (file !== `${site}.yaml`) {
    const message = `must equal the file's name: ${file} must hold the site ${file.replace(/\.yaml$/, '')}`;
    return invalid([{ path: 'site', message, ...lineOf(document, lines, ['site']) }]);
  }
  const hidden = textProblem(document.get('name') as string); // the schema has accepted it
  const warnings =
    hidden === null ? [] : [{ path: 'name', message: hidden, ...lineOf(document, lines, ['name']) }];
  for (const path of ignoredSwitches(result.data.modules)) {
    warnings.push({ path: path.join('.'), message: ALWAYS_ON_MESSAGE, ...lineOf(document, lines, path) });
  }
  return { ok: true, manifest: result.data, warnings };
}

function invalid(problems: readonly Problem[]): ParsedManifest {
  return { ok: false, reason: 'InvalidManifest', problems };
}

/** Describes only the first problems: a status shows all that are described, and finding each line takes time. */
function describeAll(issues: readonly core.$ZodIssue[], document: Document, lines: LineCounter): Problem[] {
  const single = issues.flatMap((issue): { issue: core.$ZodIssue; key: string | null }[] => {
    const keys = issue.code === 'unrecognized_keys' ? issue.keys : [null];
    return keys.map((key) => ({ issue, key }));
  });
  const shown = single.length > MAX_PROBLEMS ? single.slice(0, MAX_PROBLEMS - 1) : single;
  const problems = shown.map(({ issue, key }) => describe(issue, key, { document, lines }));
  const rest = single.length - shown.length;
  return rest === 0 ? problems : [...problems, { path: '', message: `and ${counted(rest, 'more problem')}` }];
}

/** Reports an unknown key at the key itself, not at the mapping that contains it. */
function describe(
  issue: core.$ZodIssue,
  key: string | null,
  { document, lines }: { readonly document: Document; readonly lines: LineCounter },
): Problem {
  const path = key === null ? issue.path : [...issue.path, key];
  const message = key === null ? issue.message : `unknown key "${key.slice(0, MAX_SHOWN)}"`;
  return { path: path.join('.').slice(0, MAX_SHOWN), message, ...lineOf(document, lines, path) };
}

/** The line of the deepest node on the path that exists in the text. */
function lineOf(document: Document, lines: LineCounter, path: readonly PropertyKey[]): { line?: number } {
  for (let length = path.length; length >= 0; length -= 1) {
    const parent = document.getIn(path.slice(0, length - 1), true);
    const pair = isMap(parent)
      ? parent.items.find(({ key }) => String(key) === String(path[length - 1]))
      : undefined;
    const node = isNode(pair?.key) ? pair.key : document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return { line: lines.linePos(node.range[0]).line };
  }
  return {};
}

/** By key: the default that the text omits. */
const OMITTED = new Map(
  Object.entries(manifestSchema.shape)
    .filter(([, schema]) => !alwaysWritten.has(schema))
    .map(([key, schema]) => [key, canonicalJson(schema.safeParse(undefined).data)]),
);

/** Canonical YAML in the key order of the schema, so that a diff shows only the change. */
export function formatManifest(manifest: ManifestInput): string {
  const full: Manifest = manifestSchema.parse(manifest);
  const shown = Object.entries(full).filter(([key, value]) => canonicalJson(value) !== OMITTED.get(key));
  return stringify(Object.fromEntries(shown), { lineWidth: 0, blockQuote: 'literal' });
}
