import { describe, expect, test } from 'vitest';
import {
  describeProof,
  judgeRecord,
  nextCheckMs,
  nextProof,
  type ProofState,
  proofRecord,
  type TxtAnswer,
} from '../../../management/lifecycle/proof.ts';

const DAY = 86_400_000;
const at = (day: number) => new Date(Date.UTC(2030, 0, 1) + day * DAY);
const ours: TxtAnswer = { resolver: 'a', values: ['other', 'token'] };
const none: TxtAnswer = { resolver: 'b', values: [] };
const fails: TxtAnswer = { resolver: 'c', problem: 'ETIMEOUT' };

describe('the record of a domain', () => {
  test.each<[string, TxtAnswer[], string]>([
    ['all have it', [ours, ours, ours], 'present'],
    ['more than half have it', [ours, ours, fails], 'present'],
    ['more than half have it, and one does not', [ours, ours, none], 'present'],
    ['one of three has it', [ours, none, none], 'unknown'],
    ['half have it', [ours, none], 'unknown'],
    ['the only one has it', [ours], 'present'],
    ['all lack it', [none, none, none], 'absent'],
    ['more than half lack it, and one fails', [none, none, fails], 'absent'],
    ['one lacks it, and the others fail', [none, fails, fails], 'unknown'],
    ['one has it, one lacks it, one fails', [ours, none, fails], 'unknown'],
    ['all fail', [fails, fails, fails], 'unknown'],
    ['there are no resolvers', [], 'unknown'],
  ])('is judged by the resolvers’ answers: where %s, it is $2', (_, answers, expected) => {
    expect(judgeRecord(answers, 'token')).toBe(expected);
  });

  test('has a value that depends on the client only, and is the same in every process', () => {
    const client = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
    expect(proofRecord(client, 'acme.example')).toEqual({
      name: '_tagyard-challenge.acme.example',
      value: 'tagyard-1w0718_9pKsGhwyJ5B9N6jzkY2JVRK3TQoMdV1Q85mg',
    });
    expect(proofRecord(client, 'b.example').value).toBe(proofRecord(client, 'acme.example').value);
    expect(proofRecord(client.replace('7', '8'), 'b.example').value).not.toBe(proofRecord(client, 'x').value);
  });
});

const pending: ProofState = { status: 'pending', seenAt: null, absentSince: null };
const proven: ProofState = { status: 'proven', seenAt: at(0), absentSince: null };
const missing: ProofState = { ...proven, absentSince: at(1) };
/** The domain was in use before proofs were required. */
const older: ProofState = { status: 'proven', seenAt: null, absentSince: null };
const lost: ProofState = { ...missing, status: 'lost' };

describe('the state of a proof', () => {
  test.each<[string, ProofState, Parameters<typeof nextProof>[1], number, ProofState]>([
    ['is pending until the record is there', pending, 'absent', 5, pending],
    ['is proven by the record', pending, 'present', 5, { ...proven, seenAt: at(5) }],
    ['stays proven while the resolvers fail', proven, 'unknown', 100, proven],
    ['stays proven when the record vanishes', proven, 'absent', 1, missing],
    ['keeps the day on which the record vanished', missing, 'absent', 14.9, missing],
    ['is not lost by failing resolvers', missing, 'unknown', 100, missing],
    ['is lost after fourteen days of absence', missing, 'absent', 15, lost],
    ['is proven again by the record', missing, 'present', 14, { ...proven, seenAt: at(14) }],
    ['is proven again after it was lost', lost, 'present', 90, { ...proven, seenAt: at(90) }],
    ['stays lost', lost, 'absent', 90, lost],
    ['is not lost where no record was ever seen', older, 'absent', 400, older],
  ])('%s', (_, before, verdict, day, expected) => {
    expect(nextProof(before, verdict, at(day))).toEqual(expected);
  });

  test('is described only where something is to be done', () => {
    const record = proofRecord('7c9e6679-7425-40de-944b-e07fc1f90ae7', 'acme.example');
    expect([proven, older].map((state) => describeProof('acme.example', state, record))).toEqual([
      null,
      null,
    ]);
    for (const state of [pending, missing, lost]) {
      expect(describeProof('acme.example', state, record)).toContain(record.value);
    }
    expect(describeProof('acme.example', missing, record)).toContain('from 2030-01-16 on');
  });

  test('is checked often in the first three days of waiting, else once a day', () => {
    expect(nextCheckMs({ status: 'pending', ageMs: DAY })).toBe(600_000);
    expect(nextCheckMs({ status: 'pending', ageMs: 4 * DAY })).toBe(DAY);
    expect(nextCheckMs({ status: 'proven', ageMs: 0 })).toBe(DAY);
  });
});
