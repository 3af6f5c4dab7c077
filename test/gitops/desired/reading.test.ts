import { generateIdentity, identityToRecipient } from 'age-encryption';
import { beforeAll, describe, expect, test } from 'vitest';
import { readSiteFile } from '../../../gitops/desired/reading.ts';
import { readConfig } from '../../../gitops/host-report/config.ts';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { encryptSecret } from '../../../sites/manifest/secrets.ts';
import { manifestInput, ZONES } from '../../support/manifest.ts';

/** A configuration with padding, and with digits that are different in the base64url alphabet. */
const CANONICAL = Buffer.from('id=GTM-SERVER1&env=1&auth=~~?>>>').toString('base64');

let ageIdentity: string;
beforeAll(async () => {
  ageIdentity = await generateIdentity();
});

/** The configuration that the containers of a site get, if its manifest has this text encrypted. */
async function given(text: string) {
  const encrypted = await encryptSecret(await identityToRecipient(ageIdentity), text);
  const file = {
    site: 'acme-shop',
    path: 'acme-shop.yaml',
    blob: 'blob',
    text: formatManifest(manifestInput('acme-shop', 0, { containerConfig: encrypted })),
  };
  const read = await readSiteFile(file, { host: 'tag-1', zones: ZONES, ageIdentity });
  if (!('reading' in read) || read.reading === null || !('here' in read.reading)) throw new Error('not here');
  const { manifest, stalled } = read.reading.here;
  if (manifest === null) throw new Error('no manifest');
  return { config: manifest.config, stalled };
}

describe('the CONTAINER_CONFIG that a person has encrypted', () => {
  test('has, in this sample, padding and digits in which the two alphabets differ', () => {
    expect(CANONICAL).toMatch(/[+/].*=$/);
  });

  test.each([
    ['as copied from Tag Manager', CANONICAL],
    ['with a line break at the end', `${CANONICAL}\n`],
    ['without padding', CANONICAL.replace(/=+$/, '')],
    ['in the base64url alphabet', CANONICAL.replaceAll('+', '-').replaceAll('/', '_')],
  ])('%s reaches the containers in the form that they can read', async (_what, text) => {
    const { config, stalled } = await given(text);
    expect([config.reveal(), stalled]).toEqual([CANONICAL, null]);
    expect(readConfig(config)).toEqual({ id: 'GTM-SERVER1', problem: null });
  });

  test.each(['', 'id=GTM-A&env=1&auth=x', 'aWQ9R1RNLVg='])(
    '%j, with which no container starts, is reported and doesn’t stall the site',
    async (text) => {
      const { config, stalled } = await given(text);
      expect([config.reveal(), stalled]).toEqual([text, null]);
      expect(readConfig(config)).toMatchObject({ id: null, problem: expect.any(String) });
    },
  );
});
