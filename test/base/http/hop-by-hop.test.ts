import { expect, test } from 'vitest';
import { endToEndHeaders } from '../../../base/http/hop-by-hop.ts';

test.each<[string, string[], string[], string[]]>([
  [
    'keeps order, spelling and repetitions',
    ['X-A', '1', 'x-b', '2', 'X-A', '3'],
    [],
    ['X-A', '1', 'x-b', '2', 'X-A', '3'],
  ],
  [
    'drops the fields of the connection',
    ['Connection', 'close', 'TE', 'trailers', 'X-A', '1'],
    [],
    ['X-A', '1'],
  ],
  [
    'drops fields that Connection names',
    ['connection', 'X-Hop, keep-alive', 'x-hop', '1', 'X-A', '2'],
    [],
    ['X-A', '2'],
  ],
  ['drops what the caller excludes', ['Host', 'a', 'X-A', '1'], ['host'], ['X-A', '1']],
  ['keeps transfer-encoding', ['Transfer-Encoding', 'chunked'], [], ['Transfer-Encoding', 'chunked']],
])('the copy of headers %s', (_name, raw, without, expected) => {
  expect(endToEndHeaders(raw, without)).toEqual(expected);
});
