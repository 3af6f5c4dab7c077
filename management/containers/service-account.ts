import type { Manifest } from '../../sites/manifest/schema.ts';
import { encryptFor } from '../../sites/manifest/secrets.ts';
import { parseServiceAccount } from '../../sites/manifest/service-account.ts';
import { ManagementProblem } from '../http/errors.ts';

/** The key as a manifest has it. Throws `invalid_service_account`, which never quotes a value of the key. */
export async function encryptAccount(
  body: unknown,
  { recipient, container }: { readonly recipient: string; readonly container: string },
): Promise<NonNullable<Manifest['serviceAccount']>> {
  const verdict = parseServiceAccount(body);
  if (verdict.ok) return { ...verdict.facts, key: await encryptFor(recipient, container, verdict.text) };
  const { member, problem } = verdict;
  throw new ManagementProblem('invalid_service_account', {
    detail: member === '' ? `the key ${problem}` : `${member} ${problem}`,
    errors: [{ path: member, message: problem }],
  });
}
