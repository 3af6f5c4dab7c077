import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { z } from 'zod';
import { hostname } from '../../../sites/manifest/schema.ts';
import { machineSettings } from '../../env.ts';
import { ask } from '../output/ask.ts';
import { CliError, UsageError } from '../output/cli-error.ts';
import { type Answered, QUESTIONS, type Question } from './questions.ts';

const further = z.record(z.string().regex(/^[A-Z][A-Z0-9_]*$/), z.string()).default({});
/** An answer may stay open in the file. */
const open = z.string().optional();

/** A file of answers: the questions' names, and further settings of each daemon as they are. */
const answersFile = z.strictObject({
  ...(Object.fromEntries(QUESTIONS.map(({ name }) => [name, open])) as Record<keyof Answered, typeof open>), // the very names
  provisioner: further,
  management: further,
});

export interface Answers {
  readonly given: Answered;
  /** Further settings of each daemon. */
  readonly provisioner: Readonly<Record<string, string>>;
  readonly management: Readonly<Record<string, string>>;
}

const url = z.url({ protocol: /^https?$/, error: 'must be a URL with http:// or https://' });
const one = z.string().min(1, 'must not be empty');
const id = z
  .string()
  .regex(/^[0-9a-f]{32}$/, 'must be 32 of 0-9 and a-f, as Cloudflare’s overview of the zone shows it');
const orEmpty = (schema: z.ZodType) => z.union([z.literal(''), schema]);
/** What each answer must be: the daemons' own rules, where they have one. */
const RULES: Readonly<Record<keyof Answered, z.ZodType>> = {
  EDGE_DOMAIN: hostname,
  HOST_ADDRESS: machineSettings.shape.HOST_ADDRESS,
  HOST_NAME: z.string().regex(/^[a-z0-9-]{1,32}$/, 'must be 1 to 32 of a-z, 0-9 and -'),
  SITES_REPO: one,
  CLOUDFLARE_API_TOKEN: one,
  CLOUDFLARE_ACCOUNT_ID: id,
  CLOUDFLARE_ZONE_ID: id,
  EDGE_UPSTREAM: url,
  ACME_EMAIL: z.email('must be a mail address'),
  DATABASE: z
    .string()
    .regex(
      /^[A-Za-z0-9.-]+:\d+\/[a-z_][a-z0-9_]*$/,
      'must be <host>:<port>/<database>, like localhost:5432/tagyard',
    ),
  DATABASE_ADMIN_URL: orEmpty(
    z.url({ protocol: /^postgres(?:ql)?$/, error: 'must be a URL with postgres://' }),
  ),
  AUTH_ISSUER: url,
  AUTH_JWKS_URL: url,
  SUPER_ADMINS: z.string(),
  PUBLIC_URL: orEmpty(url),
};

/** What is wrong with an answer, and what to do; `null`: nothing. */
export function faultOf(name: keyof Answered, value: string): string | null {
  // A line break would end the setting in its file, and make another one of the rest.
  if (/[\r\n']/.test(value)) return `${name}: must be one line without '`;
  const { error } = RULES[name].safeParse(value);
  return error === undefined
    ? null
    : `${name}: ${value === '' ? 'isn’t answered' : (error.issues[0]?.message ?? '')}`;
}

/** Reads a file of answers (YAML or JSON), if one is named. Throws `CliError`. */
export async function readAnswers(path: string | undefined): Promise<z.output<typeof answersFile>> {
  if (path === undefined) return answersFile.parse({});
  const text = await readFile(path, 'utf8').catch((cause: Error) => {
    throw new CliError(`${path} can't be read: ${cause.message}`, { cause });
  });
  return parseAnswers(path, text);
}

export function parseAnswers(path: string, text: string): z.output<typeof answersFile> {
  let value: unknown;
  try {
    // All values are texts: an id of digits only, or like 12e4…, must not become a number.
    value = parse(text, { schema: 'failsafe' }) ?? {};
  } catch (cause) {
    throw new CliError(`${path} is neither YAML nor JSON: ${String(cause)}`, { cause });
  }
  const { success, data, error } = answersFile.safeParse(value);
  if (success) return data;
  const lines = error.issues.map(({ path: at, message }) => `\n  ${at.join('.')}: ${message}`).join('');
  throw new CliError(
    `${path} isn't a file of answers:${lines}\nIts keys are ${QUESTIONS.map(({ name }) => name).join(', ')}; other settings belong below provisioner: or management:`,
  );
}

/** Flags of the form NAME=value. Throws `UsageError`, also for a secret. */
export function parseFlags(flags: readonly string[]): Partial<Answered> {
  return Object.fromEntries(
    flags.map((flag) => {
      const [name = '', ...rest] = flag.split('=');
      const question: Question | undefined = QUESTIONS.find((one) => one.name === name);
      if (question?.isSecret) {
        throw new UsageError(
          `--set ${name}: everyone on the machine can read arguments; put it into a file (--answers) or answer on the terminal`,
        );
      }
      if (question !== undefined && rest.length > 0) return [name, rest.join('=')];
      throw new UsageError(
        `--set ${name}: write <NAME>=<value>, with one of ${QUESTIONS.map((one) => one.name).join(', ')}`,
      );
    }),
  );
}

/**
 * Asks what is in none of the sources, the first of which counts; each bad answer is asked again on a terminal. Throws
 * `CliError` with all faults if there is none.
 */
export async function answerAll(
  sources: readonly Partial<Record<string, string | undefined>>[],
  prompt: (question: string) => Promise<string | null> = ask,
): Promise<Answered> {
  const answers: Partial<Record<keyof Answered, string>> = {};
  const faults: string[] = [];
  for (const question of QUESTIONS) {
    const { name } = question;
    const given = sources.find((source) => source[name] !== undefined)?.[name];
    const value = given ?? (await asked(question, name, prompt));
    const fault = faultOf(name, value);
    if (fault !== null) faults.push(fault);
    answers[name] = value;
  }
  if (faults.length === 0) return answers as Answered; // each question has an answer
  throw new CliError(
    `answer these by --set <NAME>=<value>, in a file (--answers), or on a terminal:${faults.map((fault) => `\n  ${fault}`).join('')}`,
  );
}

async function asked(
  { text, usual }: Question,
  name: keyof Answered,
  prompt: (question: string) => Promise<string | null>,
): Promise<string> {
  for (;;) {
    const answer = await prompt(`${text}${usual ? ` [${usual}]` : ''}: `);
    const value = answer || (usual ?? '');
    const fault = faultOf(name, value);
    // Without a terminal, or after Ctrl-C, asking again would never end.
    if (answer === null || fault === null) return value;
    if (answer === '' && usual === undefined) throw new CliError(`${fault}; run tagyard init again to go on`);
    process.stderr.write(`${fault}\n`);
  }
}
