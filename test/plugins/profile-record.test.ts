import { expect, test } from 'vitest';
import { isProfileRecord } from '../../plugins/profile.ts';

const cookie = { name: '_ga', value: '1', setAt: 1, expiresAt: 2 };
const record = { version: 1, session: null, cookies: [cookie] };

test.each<[string, object]>([
  ['only what is required', record],
  ['without cookies', { ...record, cookies: [] }],
  ['with a session', { ...record, session: { id: 'a', lastSeenAt: 1 } }],
  ['with the attributes of a cookie', { ...record, cookies: [{ ...cookie, attributes: 'Path=/' }] }],
  ['with all that is optional', { ...record, startedAt: 1, browsers: [{ id: 'a', at: 1 }], isShared: true }],
])('is a record: %s', (_name, value) => {
  expect(isProfileRecord(value)).toBe(true);
});

test.each<[string, unknown]>([
  ['no object', null],
  ['a text', 'record'],
  ['a list', [record]],
  ['of another version', { ...record, version: 2 }],
  ['without the member session, not even null', { ...record, session: undefined }],
  ['a session without a time', { ...record, session: { id: 'a' } }],
  ['a session without an id', { ...record, session: { lastSeenAt: 1 } }],
  ['no list of cookies', { ...record, cookies: { 0: cookie, length: 1 } }],
  ['null among the cookies', { ...record, cookies: [cookie, null] }],
  ['a cookie without a name', { ...record, cookies: [{ ...cookie, name: undefined }] }],
  ['a cookie whose value is a number', { ...record, cookies: [{ ...cookie, value: 1 }] }],
  ['a cookie whose time is a text', { ...record, cookies: [{ ...cookie, setAt: '1' }] }],
  ['a cookie without an end', { ...record, cookies: [{ ...cookie, expiresAt: null }] }],
  ['attributes of null', { ...record, cookies: [{ ...cookie, attributes: null }] }],
  ['a start that is no number', { ...record, startedAt: '1' }],
  ['a browser without an id', { ...record, browsers: [{ at: 1 }] }],
  ['a browser without a time', { ...record, browsers: [{ id: 'a' }] }],
  ['no list of browsers', { ...record, browsers: null }],
  ['isShared as a text', { ...record, isShared: 'yes' }],
])('is no record: %s', (_name, value) => {
  expect(isProfileRecord(value)).toBe(false);
});
