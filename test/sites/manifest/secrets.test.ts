import { generateIdentity, identityToRecipient } from 'age-encryption';
import { describe, expect, test } from 'vitest';
import {
  decryptSecret,
  encryptSecret,
  testIdentities,
  testRecipient,
} from '../../../sites/manifest/secrets.ts';

const [first, second] = [await generateIdentity(), await generateIdentity()];
/** A key file in the format of age-keygen. */
const keygen = async (identity: string) =>
  `# created: 2026-11-22T07:00:00Z\n# public key: ${await identityToRecipient(identity)}\n${identity}\n`;
const [firstFile, secondFile] = [await keygen(first), await keygen(second)];

describe('an age key file', () => {
  test.each([
    ['one identity', first],
    ['the comments of age-keygen', firstFile],
    ['several identities', `${secondFile}\n${firstFile}`],
    ['empty lines, spaces and Windows line ends', `\r\n  ${second}  \r\n\r\n${first}\r\n\r\n`],
  ])('decrypts with %s', async (_what, keyFile) => {
    await testIdentities(keyFile);
    const armored = await encryptSecret(await identityToRecipient(first), 'a secret');
    expect((await decryptSecret(keyFile, armored)).reveal()).toBe('a secret');
  });

  test('doesn’t decrypt with another identity', async () => {
    const armored = await encryptSecret(await identityToRecipient(first), 'a secret');
    await expect(decryptSecret(second, armored)).rejects.toThrow();
  });

  const damaged = `${first.slice(0, -4)}QQQQ`;
  test.each([
    ['nothing', '', 'there is no age identity'],
    ['comments only', '# created: today\n', 'there is no age identity'],
    ['something else', `# key\nage1recipient\n`, 'line 2 is not an age identity'],
    ['a damaged identity', `${second}\n${damaged}`, 'its identity 2 is damaged'],
  ])('with %s is refused without a word of its content', async (_what, keyFile, message) => {
    const error: unknown = await testIdentities(keyFile).catch((reason: unknown) => reason);
    expect(String(error)).toContain(message);
    for (const part of [second, damaged, 'recipient']) expect(String(error)).not.toContain(part);
  });
});

test('a damaged recipient is refused', async () => {
  const recipient = await identityToRecipient(first);
  await testRecipient(recipient);
  await expect(testRecipient(`${recipient.slice(0, -4)}qqqq`)).rejects.toThrow('it is damaged');
});
