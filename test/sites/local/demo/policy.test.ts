import { expect, test } from 'vitest';
import { runPolicy } from '../../../../sites/local/demo/tag-server/policy/policy.ts';

const rule = (permission: string, body: string) =>
  `gtag('policy', '${permission}', function (container, permission, data) { ${body} });`;
const REJECTED = 'the policy rejected it';

test.each([
  ['nothing', '', null],
  ['true', rule('send_http', 'return true;'), null],
  ['nothing for this permission', rule('get_cookies', 'return false;'), null],
  ['false', rule('send_http', 'return false;'), REJECTED],
  ['false in a rule for all', rule('all', 'return permission !== "send_http";'), REJECTED],
  ['false for this container', rule('all', 'return container !== "GTM-A";'), REJECTED],
  ['false for these data', rule('all', 'return data.url !== "x";'), REJECTED],
  ['true, then false', `${rule('all', 'return true;')}${rule('all', 'return false;')}`, REJECTED],
  ['an error', rule('all', 'throw new Error("not here");'), `${REJECTED}: not here`],
  ['an endless loop', rule('all', 'for (;;);'), `${REJECTED}: Script execution timed out after 1000ms`],
])('a script that answers %s: the refusal is $2', (_what, script, refusal) => {
  expect(runPolicy(script, 'GTM-A').refusal('send_http', { url: 'x' })).toEqual(refusal);
});

test('a script that can’t be run causes an error', () => {
  expect(() => runPolicy('gtag(', 'GTM-A')).toThrow(/^The policy script can't be run: /);
});
