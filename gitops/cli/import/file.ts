import { readFile } from 'node:fs/promises';
import { LineCounter, parseDocument } from 'yaml';
import { z } from 'zod';
import { givenContainer } from '../../../sites/requests/container.ts';
import { givenClient } from '../../../sites/requests/members.ts';
import { CliError } from '../output/cli-error.ts';

/** In place of the client's id, which doesn't matter to these checks. */
const NO_CLIENT = '00000000-0000-4000-8000-000000000000';

/** A container's fields as in `POST /server-containers`, except `client`. The API's own schema checks them. */
const containerItem = z.record(z.string(), z.unknown()).superRefine((body, context) => {
  for (const name of ['client', 'clientId'].filter((one) => one in body)) {
    context.addIssue({
      code: 'custom',
      path: [name],
      message: 'must be missing: the container belongs to the client that lists it',
      input: body,
    });
  }
  const { client: _, ...rest } = body;
  const judged = givenContainer.safeParse({ ...rest, clientId: NO_CLIENT });
  for (const issue of judged.error?.issues ?? []) {
    context.addIssue({ code: 'custom', path: issue.path, message: issue.message, input: body });
  }
});

const clientItem = z
  .looseObject({ id: z.uuid().optional(), containers: z.array(containerItem).default([]) })
  .superRefine(({ id, containers: _, ...body }, context) => {
    const judged = id === undefined ? givenClient.safeParse(body) : z.strictObject({}).safeParse(body);
    for (const issue of judged.error?.issues ?? []) {
      context.addIssue({ code: 'custom', path: issue.path, message: issue.message, input: body });
    }
  });

const importFile = z.strictObject({ clients: z.array(clientItem).min(1) }).superRefine((file, context) => {
  const seen = new Set<string>();
  file.clients.forEach(({ id, name }, index) => {
    const key = id ?? `name ${String(name)}`;
    const message = 'is listed twice: put the containers of one client together';
    if (seen.has(key)) context.addIssue({ code: 'custom', path: ['clients', index], message, input: file });
    seen.add(key);
  });
});

export type ClientItem = z.infer<typeof importFile>['clients'][number];
export type ContainerItem = ClientItem['containers'][number];

/** Reads clients and containers in YAML or JSON. Throws `CliError`: one syntax error or all problems, with lines. */
export async function readImportFile(path: string): Promise<readonly ClientItem[]> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new CliError(`${path} can't be read: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
  });
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const [fault] = document.errors;
  if (fault !== undefined) {
    throw new CliError(`${path}:${lines.linePos(fault.pos[0]).line}: ${fault.message}`);
  }
  const parsed = importFile.safeParse(document.toJS());
  if (parsed.success) return parsed.data.clients;
  const lineOf = (keys: readonly PropertyKey[]): number => {
    for (let length = keys.length; length > 0; length -= 1) {
      const node = document.getIn(keys.slice(0, length), true);
      if (typeof node === 'object' && node !== null && 'range' in node && Array.isArray(node.range)) {
        return lines.linePos(Number(node.range[0])).line;
      }
    }
    return 1;
  };
  const problems = parsed.error.issues.map(
    ({ path: keys, message }) => `\n  line ${lineOf(keys)}: ${keys.map(String).join('.')}: ${message}`,
  );
  throw new CliError(`${path} is invalid, nothing was done:${problems.join('')}`);
}
