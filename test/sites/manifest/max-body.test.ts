import { expect, test } from 'vitest';
import { MAX_BODY_OCTETS } from '../../../edge/http/request-headers.ts';
import { manifestSchema, vhostOptionsOf } from '../../../sites/manifest/schema.ts';
import { manifestInput } from '../../support/manifest.ts';

const MOST = MAX_BODY_OCTETS / 1_048_576;
const parse = (maxBodyMb: number) => manifestSchema.safeParse(manifestInput('acme', 0, { maxBodyMb }));

test('a site may allow what the edge passes on, and nothing longer', () => {
  for (const maxBodyMb of [1, MOST]) expect(parse(maxBodyMb).data).toMatchObject({ maxBodyMb });
  for (const refused of [0, MOST + 1, 1.5]) {
    expect(parse(refused).error?.issues).toMatchObject([{ path: ['maxBodyMb'] }]);
  }
});

test('the preview server’s vhosts don’t get the key', () => {
  expect(vhostOptionsOf({ maxBodyMb: 2 })).toEqual({ maxBodyMb: 2 });
  expect(vhostOptionsOf({ maxBodyMb: 2 }, 'preview')).toBeUndefined();
  expect(vhostOptionsOf({})).toBeUndefined();
});
