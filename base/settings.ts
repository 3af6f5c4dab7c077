import type { z } from 'zod';
import { removedSettings } from './removed-settings.ts';

/**
 * Reads the settings of a part from environment variables; an empty one counts as unset. Throws an `Error` with a line for
 * each fault: the setting, what is wrong, and what it is for. `further` finds faults of settings that are valid alone.
 */
export function parseSettings<Schema extends z.ZodObject>(
  schema: Schema,
  source: NodeJS.ProcessEnv,
  further: (settings: z.output<Schema>) => readonly string[] = () => [],
): z.output<Schema> {
  const given = Object.fromEntries(Object.entries(source).filter(([, value]) => value !== ''));
  const { success, data, error } = schema.safeParse(given, { error: plainly });
  const faults = [
    ...removedSettings(source),
    ...(success ? further(data) : error.issues.map((issue) => faultOf(issue, schema))),
  ];
  if (success && faults.length === 0) return data;
  const lines = faults.length === 1 ? [` ${faults[0]}`] : faults.map((fault) => `\n  ${fault}`);
  throw new Error(`the environment is wrong:${lines.join('')}`);
}

function faultOf({ path, message }: z.core.$ZodIssue, schema: z.ZodObject): string {
  const field: z.ZodType | undefined = schema.shape[String(path[0])];
  const [purpose] = (field?.description ?? '').split(/(?<=\.) /);
  return `${path.join('.')}: ${message}${purpose === '' ? '' : `. ${purpose}`}`;
}

/** What a value must be, for issues whose schema doesn't say it. `undefined`: zod's own text is plain enough. */
function plainly(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined) return 'isn’t set';
  if (issue.code === 'invalid_type') return `must be a ${issue.expected}`;
  if (issue.code === 'invalid_value') return `must be ${issue.values.join(' or ')}`;
  if (issue.code === 'invalid_format') {
    const { format, pattern } = issue;
    return format === 'regex'
      ? `must match ${pattern}`
      : `must be ${FORMATS[format] ?? `of the form ${format}`}`;
  }
  const unit = issue.origin === 'string' ? ' characters' : '';
  if (issue.code === 'too_small') {
    return `must be ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}${unit}`;
  }
  return issue.code === 'too_big' ? `must be at most ${issue.maximum}${unit}` : undefined;
}

const FORMATS: Readonly<Record<string, string>> = {
  url: 'a URL',
  ipv4: 'an IPv4 address',
  ipv6: 'an IPv6 address',
};
