import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { parseServiceAccount, readServiceAccount } from '../../../sites/manifest/service-account.ts';
import { FACTS, PRIVATE_LINE, serviceAccountJson } from '../../support/service-account.ts';

describe('the key of a service account', () => {
  test('is accepted as Google Cloud’s console downloads it, with the facts that identify it', () => {
    const verdict = parseServiceAccount(serviceAccountJson());
    expect(verdict).toMatchObject({ ok: true, facts: FACTS });
    expect(verdict.ok && readServiceAccount(verdict.text)).toEqual(verdict);
  });

  test('keeps only members that Google’s libraries read: others might name a file or a command', () => {
    const verdict = parseServiceAccount(serviceAccountJson({ credential_source: { file: '/etc/passwd' } }));
    expect(verdict.ok && verdict.text).not.toContain('passwd');
  });

  test.each([
    ['with text before its PEM', (pem: string) => `${'e\n'.repeat(400)}${pem}`],
    ['with text after its PEM', (pem: string) => `${pem}text\n`],
    ['with CRLF line ends', (pem: string) => pem.replaceAll('\n', '\r\n')],
    ['in PKCS #1', (pem: string) => String(createPrivateKey(pem).export({ type: 'pkcs1', format: 'pem' }))],
  ])('%s is stored in the usual form', (_what, change) => {
    const json = serviceAccountJson();
    const verdict = parseServiceAccount({ ...json, private_key: change(String(json.private_key)) });
    expect(verdict).toEqual(parseServiceAccount(json));
  });

  const ecKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  test.each<[string, Record<string, unknown>, string, RegExp]>([
    ['of a person', { type: 'authorized_user' }, 'type', /must be service_account/],
    ['of an external account', { type: 'external_account' }, 'type', /must be service_account/],
    ['without a project', { project_id: undefined }, 'project_id', /is missing/],
    ['without an address', { client_email: undefined }, 'client_email', /is missing/],
    ['without an id', { private_key_id: undefined }, 'private_key_id', /is missing/],
    ['without a private key', { private_key: undefined }, 'private_key', /is missing/],
    ['with a damaged private key', { private_key: `${PRIVATE_LINE}!` }, 'private_key', /RSA private key/],
    [
      'with a private key of another kind',
      { private_key: ecKey.export({ type: 'pkcs8', format: 'pem' }) },
      'private_key',
      /RSA private key/,
    ],
    [
      'whose tokens come from elsewhere',
      { token_uri: 'https://evil.example/token' },
      'token_uri',
      /Google’s/,
    ],
    [
      'whose tokens come from a name that resembles Google’s',
      { token_uri: 'https://oauth2.googleapis.com.evil.example/' },
      'token_uri',
      /Google’s/,
    ],
    ['of 100 KiB', { client_id: 'x'.repeat(100 * 1024) }, '', /at most 8192 bytes/],
  ])('%s is refused, and never quoted', (_what, extra, member, problem) => {
    const verdict = parseServiceAccount(serviceAccountJson(extra));
    expect(verdict).toEqual({ ok: false, member, problem: expect.stringMatching(problem) });
    expect(JSON.stringify(verdict)).not.toContain(PRIVATE_LINE);
  });

  test.each(['', 'no JSON', 'null', '[]', '"text"'])('is refused if it is no JSON object: %s', (text) => {
    expect(readServiceAccount(text)).toMatchObject({ ok: false });
  });
});
