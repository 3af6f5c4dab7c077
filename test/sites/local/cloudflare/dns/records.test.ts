import { expect, test, vi } from 'vitest';
import { openState } from '../../../../../sites/local/cloudflare/api/state.ts';
import { zoneRecords } from '../../../../../sites/local/cloudflare/dns/records.ts';

test('a batch counts the records of its zone once', () => {
  using db = openState(':memory:');
  const zone = { id: 'a'.repeat(32), name: 'example.net', created_on: new Date(0).toISOString() };
  db.prepare('INSERT INTO zones (id, name, created_on) VALUES (?, ?, ?)').run(...Object.values(zone));
  const records = zoneRecords({ db, zone, now: () => new Date(0), limit: 100 });
  const statements = vi.spyOn(db, 'prepare');
  const posts = Array.from({ length: 50 }, (_, index) => ({
    type: 'A',
    name: `site-${index}`,
    content: '192.0.2.1',
  }));
  expect(records.batch({ posts }).posts).toHaveLength(50);
  expect(statements.mock.calls.filter(([sql]) => sql.includes('count(*)'))).toHaveLength(1);
});
