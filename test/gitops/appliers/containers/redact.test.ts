import { describe, expect, test } from 'vitest';
import { redact } from '../../../../gitops/appliers/containers/redact.ts';
import { Secret } from '../../../../gitops/manifest/secrets.ts';
import { PRIVATE_LINE, serviceAccountJson } from '../../../support/service-account.ts';

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
  ])('%s', (text, shown) => {
    expect(redact({ config: new Secret(base64) }, text)).toBe(shown);
  });

  test('an invalid config is hidden itself', () => {
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
});
