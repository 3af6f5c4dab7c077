import { styleText } from 'node:util';
import { createClient } from '../../base/client/client.ts';
import { environmentAccess } from './client.ts';
import { readImportFile } from './import/file.ts';
import { KnownClients } from './import/known-clients.ts';
import { type ItemOutcome, importClient } from './import/outcome.ts';
import { embeddedAccess } from './instance/embedded-access.ts';
import { OPERATOR } from './instance/issuer.ts';
import type { CliContext } from './instance/provisioner-client.ts';
import { type OutputOptions, print } from './output/print.ts';
import { table } from './output/table.ts';

export interface ImportOptions extends OutputOptions {
  readonly file: string;
  readonly yes?: true;
}

/**
 * Creates the clients and containers of a file that don't exist yet. Without `--yes` it shows what it would create. It
 * calls `MANAGEMENT_URL` with `TAGYARD_TOKEN`, by default the embedded instance of this home. Exit code 1 if an item
 * failed; a repeated import continues.
 */
export async function importContainers(context: CliContext, options: ImportOptions): Promise<void> {
  const clients = await readImportFile(options.file);
  const environment = environmentAccess(context);
  const access = environment ?? (await embeddedAccess(context, OPERATOR));
  const api = createClient(access);
  const known = await KnownClients.read(options.file, access.url);
  const isReal = options.yes === true;
  const items: ItemOutcome[] = [];
  // On the embedded instance the command line makes itself a member.
  const join = async (id: string) => {
    const params = { path: { id, subject: OPERATOR } };
    await api.put('/clients/{id}/members/{subject}', { params, body: { role: 'admin' } });
  };
  for (const client of clients) {
    await importClient(client, { api, known, isReal, join: environment === null ? join : null }, (outcome) =>
      items.push(outcome),
    );
  }
  print(options, { dryRun: !isReal, items }, (result) => render(result.items, isReal));
  if (items.some(({ outcome }) => outcome === 'failed' || outcome === 'skipped')) process.exitCode = 1;
}

function render(items: readonly ItemOutcome[], isReal: boolean): string {
  const rows = items.map(({ kind, name, outcome, id, detail }) => [
    styleText(outcome === 'failed' || outcome === 'skipped' ? 'red' : 'green', outcome),
    kind,
    name,
    [id, detail].filter((text) => text !== null && text !== '').join('  '),
  ]);
  const count = items.filter(({ outcome }) => outcome === 'create').length;
  return `${table(rows)}${isReal || count === 0 ? '' : `\n${count} to create; nothing was done: repeat with --yes\n`}`;
}
