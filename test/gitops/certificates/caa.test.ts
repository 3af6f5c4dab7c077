import { expect, test } from 'vitest';
import { caaFault } from '../../../gitops/certificates/caa.ts';

const fix = (ca: string) => `: add the record acme.example CAA 0 issue "${ca}"`;

test.each([
  ['none', [], ['ca.example'], null],
  ['the authority’s', ['other.example', 'CA.example; accounturi=https://x'], ['ca.example'], null],
  ['a second domain of the authority', ['ca2.example'], ['ca.example', 'ca2.example'], null],
  [
    'another’s',
    ['other.example'],
    ['ca.example'],
    `let only other.example issue certificates${fix('ca.example')}`,
  ],
  ['nobody’s', [';'], ['ca.example'], `let no authority issue certificates${fix('ca.example')}`],
  ['any, of an authority that names no domains', ['other.example'], [], null],
  [
    'nobody’s, of such an authority',
    [';'],
    [],
    `let no authority issue certificates${fix('the authority’s domain')}`,
  ],
  [
    'the authority’s, by another challenge',
    ['ca.example; validationmethods=dns-01'],
    ['ca.example'],
    `don’t let it validate by http-01${fix('ca.example')}`,
  ],
  [
    'the authority’s, by this challenge',
    ['ca.example;validationmethods=dns-01,http-01'],
    ['ca.example'],
    null,
  ],
])('CAA records: %s', (_what, issue, identities, fault) => {
  const found = caaFault({ owner: 'acme.example', issue }, { identities, method: 'http-01' });
  expect(found).toBe(fault === null ? null : `the CAA records of acme.example ${fault}`);
});
