import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { contentHash, formatMark } from '../../../base/ownership.ts';
import type { Change } from '../../../gitops/appliers/contract.ts';
import { canonicalRecord, DNS, type RecordSpec, recordKey } from '../../../gitops/appliers/dns/desired.ts';
import { type DnsRef, type ListedRecord, observedRecords } from '../../../gitops/appliers/dns/observed.ts';
import { planResources } from '../../../gitops/appliers/plan.ts';
import { judge } from '../../../gitops/pass/guards.ts';
import { describeWith, REFERENCE } from '../../support/components.ts';

const endpoint = z.looseObject({
  DNSName: z.string(),
  RecordType: z.string(),
  Targets: z.nullish(z.array(z.string())),
  RecordTTL: z.nullish(z.number()),
  Labels: z.nullish(z.record(z.string(), z.string())),
  ProviderSpecific: z.nullish(z.array(z.object({ Name: z.string(), Value: z.string() }))),
});
type Endpoint = z.infer<typeof endpoint>;
const endpoints = z.nullish(z.array(endpoint)).transform((list) => list ?? []);
const vectors = z.object({
  cases: z.array(
    z.looseObject({
      name: z.string(),
      policy: z.enum(['sync', 'upsert-only']),
      ownerId: z.nullable(z.string()),
      current: endpoints,
      desired: endpoints,
      expected: z.looseObject({
        Create: endpoints,
        UpdateNew: endpoints,
        UpdateOld: endpoints,
        Delete: endpoints,
        hasChanges: z.boolean().optional(),
      }),
    }),
  ),
});

const SEVERAL =
  'two desired records of one name never reach the planner: the older site keeps the name, the other is stalled';
const WEIGHTED = 'Tagyard has no weighted records (several records with the same name and type)';
const ZONE = 'a name outside the zone is refused when it is applied, not when it is planned';
const ALIAS = 'no other record can exist beside a CNAME, so a foreign TXT is a conflict';
/** The cases whose expected changes Tagyard does not make, each with the reason. */
const SKIPPED: Readonly<Record<string, string>> = {
  TestSyncFirstRound: SEVERAL,
  TestSyncSecondRound: SEVERAL,
  TestSyncSecondRoundMigration: SEVERAL,
  TestIdempotency: SEVERAL,
  TestCurrentWithConflictingDesired: SEVERAL,
  TestNoCurrentWithConflictingDesired: SEVERAL,
  TestMultipleRecordsSameNameDifferentSetIdentifier: WEIGHTED,
  TestSetIdentifierUpdateCreatesAndDeletes: WEIGHTED,
  TestDomainFiltersInitial: ZONE,
  TestDomainFiltersUpdate: ZONE,
  TestIgnoreTXT: ALIAS,
  TestExcludeTXT: ALIAS,
  TestRecordOwnerIdMigration:
    'a mark names one instance; objects with the mark of another one are taken over only by adopt: true',
};

const identity = { instance: 'external', host: 'tag-1' };

function recordOf({ DNSName, RecordType, Targets, RecordTTL, ProviderSpecific }: Endpoint): RecordSpec {
  const proxied =
    ProviderSpecific?.find(({ Name }) => Name.endsWith('/cloudflare-proxied'))?.Value === 'true';
  const content = (Targets ?? []).join(',');
  const record = { name: DNSName, type: RecordType, content, ttl: RecordTTL ?? 1, proxied };
  return canonicalRecord(record) as RecordSpec; // the cases that run have only A, AAAA and CNAME
}

/** `ownerId` unset: the case has no owners, and all current records are ours. */
function listed(one: Endpoint, index: number, ownerId: string | null): ListedRecord {
  const record = recordOf(one);
  const ours = ownerId === null || one.Labels?.owner === ownerId;
  const comment = ours ? formatMark(identity, 'site', contentHash(record)) : null;
  return { ...record, id: String(index), comment };
}

const texts = (records: Iterable<RecordSpec | ListedRecord>) =>
  [...records]
    .map(({ name, type, content, ttl, proxied }) => JSON.stringify([name, type, content, ttl, proxied]))
    .sort();

describeWith('reference', 'the tables of external-dns', () => {
  const { cases } = vectors.parse(
    JSON.parse(readFileSync(new URL('vectors/external_dns_plan.json', REFERENCE), 'utf8')),
  );

  test('are all either run or skipped with a reason', () => {
    const names = cases.map(({ name }) => name);
    expect(Object.keys(SKIPPED).filter((name) => !names.includes(name))).toEqual([]);
    expect(names.length - Object.keys(SKIPPED).length).toBeGreaterThan(15);
  });

  for (const one of cases) {
    const reason = SKIPPED[one.name];
    test.skipIf(reason !== undefined)(`${one.name}${reason === undefined ? '' : `: ${reason}`}`, () => {
      const current = one.current.map((each, index) => listed(each, index, one.ownerId));
      const desired = one.desired.map((each) => {
        const spec = recordOf(each);
        const key = recordKey(spec);
        const [target, site, summary, adopt] = ['dns', 'site', key, false] as const;
        return { target, site, key, hash: contentHash(spec), summary, adopt, spec };
      });
      const plan = planResources(desired, observedRecords(current, desired, identity), DNS);
      const { allowed } = judge({
        sites: [{ site: 'site', state: 'present', protect: false, suspend: false, unusable: false }],
        plans: [plan],
        targets: [{ ...DNS, owned: current.length }],
        policy: one.policy === 'sync' ? 'sync' : 'upsert_only',
        frozen: null,
        historyRewritten: false,
        stateLost: false,
        removals: new Map(),
        unobservedNames: [],
        approved: new Set(),
      });
      if (one.expected.hasChanges !== undefined) {
        expect(allowed.length > 0).toBe(one.expected.hasChanges);
        return;
      }
      const { Create, UpdateNew, UpdateOld, Delete } = one.expected;
      const removed = new Set(texts([...UpdateOld, ...Delete].map(recordOf)));
      const stays = current.filter((record) => !removed.has(texts([record]).join('')));
      expect(texts(after(current, allowed))).toEqual(
        texts([...stays, ...[...Create, ...UpdateNew].map(recordOf)]),
      );
    });
  }
});

/** The records of the zone after the changes. */
function after(current: readonly ListedRecord[], changes: readonly Change[]): (RecordSpec | ListedRecord)[] {
  const records = new Map<string, RecordSpec | ListedRecord>(current.map((record) => [record.id, record]));
  for (const { key, desired, observed } of changes as readonly Change<RecordSpec, DnsRef>[]) {
    // The cast is safe: all changes come from the plan for DNS.
    for (const id of [observed?.ref.keep, ...(observed?.ref.surplus ?? [])]) records.delete(id ?? '');
    if (desired !== undefined) records.set(`new ${key}`, desired.spec);
  }
  return [...records.values()];
}
