import { expect, test } from 'vitest';
import { addClient, parseMember } from '../../../gitops/cli/client.ts';

test.each([
  ['ada@agency.example:owner', { subject: 'ada@agency.example', role: 'owner' }],
  ['auth0|x:viewer', { subject: 'auth0|x', role: 'viewer' }],
  ['google-oauth2:123:editor', { subject: 'google-oauth2:123', role: 'editor' }],
])('--member %s is read', (text, member) => {
  expect(parseMember(text)).toEqual(member);
});

test.each(['ada', ':owner', 'ada:', ''])('--member "%s" is refused', (text) => {
  expect(() => parseMember(text)).toThrow('give it as <subject>:<role>');
});

test('MANAGEMENT_URL needs TAGYARD_TOKEN', async () => {
  const context = { home: '/nonexistent', env: { MANAGEMENT_URL: 'http://127.0.0.1:1' } };
  await expect(addClient(context, 'Acme', [])).rejects.toThrow('set TAGYARD_TOKEN');
});
