import { expect, test } from 'vitest';
import { readConfig } from '../../../gitops/host-report/config.ts';
import { Secret } from '../../../sites/manifest/secrets.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');

test.each([
  [base64('id=GTM-A&env=1&auth=x'), { id: 'GTM-A', problem: null }],
  [base64('id=GTM-A&env=1'), { id: null, problem: 'it has no auth' }],
  [base64('id=GTM-A&env=&auth='), { id: null, problem: 'it has an empty env' }],
  [base64('id=GTM-A&id=GTM-B&env=1&auth=x'), { id: null, problem: 'it has more than one id' }],
  ['not base64', { id: null, problem: 'it is not base64 text' }],
  ['', { id: null, problem: 'it is not base64 text' }],
])('the CONTAINER_CONFIG “%s” is read as $1', (text, expected) => {
  expect(readConfig(new Secret(text))).toEqual(expected);
});
