import { describe, expect, test } from 'vitest';
import { LONGEST_READ, redact } from '../../../../../gitops/appliers/containers/output/redact.ts';
import { Secret } from '../../../../../sites/manifest/secrets.ts';
import { PRIVATE_LINE, serviceAccountJson } from '../../../../support/service-account.ts';

const query = 'id=GTM-SERVER1&env=1&auth=s3cret/t0ken+x';
const base64 = Buffer.from(query).toString('base64');
const AUTH = new URLSearchParams(query).get('auth') ?? '';

describe('the shown output of a container', () => {
  test.each([
    [
      'GET /server.js?id=GTM-SERVER1&gtm_auth=s3cret/t0ken x failed',
      'GET /server.js?id=GTM-SERVER1&gtm_auth=[secret] failed',
    ],
    [`auth ${encodeURIComponent(AUTH)} refused`, 'auth [secret] refused'],
    [`config ${base64}`, 'config [secret]'],
    ['decoded s3cret/t0ken+x', 'decoded [secret]'],
    ['nothing to hide: id=GTM-SERVER1, env=1', 'nothing to hide: id=GTM-SERVER1, env=1'],
  ])('shows “%s” as “%s”', (text, shown) => {
    expect(redact({ config: new Secret(base64) }, text)).toBe(shown);
  });

  test('a config that can’t be decoded is hidden as a whole', () => {
    expect(redact({ config: new Secret('%%% no base64') }, 'got %%% no base64')).toBe('got [secret]');
  });

  test('the private key of a service account is hidden, in PEM and in JSON', () => {
    const json = serviceAccountJson();
    const secrets = { config: new Secret(base64), serviceAccountKey: new Secret(JSON.stringify(json)) };
    for (const text of [String(json.private_key), JSON.stringify(json)]) {
      const shown = redact(secrets, text);
      expect(shown).toContain('[secret]');
      expect(shown).toContain('BEGIN PRIVATE KEY');
      expect(shown).not.toContain(PRIVATE_LINE);
    }
  });

  const json = serviceAccountJson();
  const pem = String(json.private_key);
  const secretsWith = (key: string) => ({
    config: new Secret(base64),
    serviceAccountKey: new Secret(JSON.stringify({ ...json, private_key: key })),
  });

  test.each([
    ['as stored, in PEM', (stored: string) => stored],
    ['as stored, in JSON', (stored: string) => JSON.stringify(stored)],
    ['as parsed, in PEM', () => pem],
    ['as parsed, in JSON', () => JSON.stringify(pem)],
    ['as parsed, with CRLF in JSON', () => JSON.stringify(pem.replaceAll('\n', '\r\n'))],
  ])('shows no line of a private key that was wrapped by hand and is printed %s', (_how, print) => {
    const stored = `e\n${pem.replaceAll('\n', ' \r\n')}`;
    const shown = redact(secretsWith(stored), print(stored));
    const lines = pem.split('\n').filter((line) => line.length >= 8 && !line.startsWith('-----'));
    expect(lines.filter((line) => shown.includes(line))).toEqual([]);
    expect(shown).toContain('[secret]');
  });

  test('a short line in the text around a private key is no secret', () => {
    const stored = `${'e\n'.repeat(12)}${pem}`;
    expect(redact(secretsWith(stored), 'see the secret e')).toBe('see the secret e');
  });

  test('the text that replaces one secret is not searched for another', () => {
    const config = new Secret(Buffer.from('id=GTM-SERVER1&auth=e').toString('base64'));
    expect(redact({ config }, 'ee')).toBe('[secret][secret]');
    expect(redact({ ...secretsWith(pem), config }, PRIVATE_LINE)).toBe('[secret]');
  });

  test.each([...PRIVATE_LINE].map((_, index) => index))(
    'a long text shows no part of a secret that begins %i characters before the cut',
    (before) => {
      const shown = redact(
        secretsWith(pem),
        `${'.'.repeat(LONGEST_READ - before)}${PRIVATE_LINE}${'.'.repeat(99_999)}`,
      );
      expect(shown.replace(/^\.+/, '')).toBe(before === 0 ? '' : '[secret]');
    },
  );
});
