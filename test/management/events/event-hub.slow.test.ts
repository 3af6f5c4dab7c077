import type { PGlite } from '@electric-sql/pglite';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { ConnectedDatabase, type Listen } from '../../../management/db/connected.ts';
import { EmbeddedDialect } from '../../../management/db/embedded-dialect.ts';
import { listenOnEmbedded } from '../../../management/db/listen.ts';
import { EventHub } from '../../../management/events/event-hub.ts';
import { listEvents, newestEvent } from '../../../management/records/events.repository.ts';
import { eventually } from '../../support/eventually.ts';
import { migratedEngine } from '../../support/management/embedded.ts';
import { listen } from '../../support/management/listen.ts';
import { creation, World } from '../../support/management/world.ts';

type Handlers = Parameters<Listen>[1];

/** An embedded database whose notices can be lost, as they are while a connection to PostgreSQL is replaced. */
class LossyDatabase extends ConnectedDatabase {
  #handlers: Handlers | null = null;
  #lost: string[] | null = null;

  constructor(open: () => Promise<PGlite>) {
    super(new EmbeddedDialect({ pglite: open }), async (db, handlers, signal) => {
      this.#handlers = handlers;
      const onNotice = (notice: string) => {
        if (this.#lost === null) handlers.onNotice(notice);
        else this.#lost.push(notice);
      };
      await listenOnEmbedded(open)(db, { ...handlers, onNotice }, signal);
    });
  }

  loseNotices(): void {
    this.#lost = [];
  }

  /** Reports the first of the lost notices after all. */
  reportFirst(): void {
    const first = this.#lost?.shift();
    if (first !== undefined) this.#handlers?.onNotice(first);
  }

  /** Holds all queries until the returned function is called. */
  async hold(): Promise<() => void> {
    const held = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    void this.connection().execute(() => {
      held.resolve();
      return released.promise;
    });
    await held.promise;
    return released.resolve;
  }

  /** Listens again. With `isLastReported`, the last notice is not lost, but comes at once. */
  listenAgain(isLastReported = false): void {
    const last = this.#lost?.at(-1);
    this.#lost = null;
    this.#handlers?.onListening();
    if (isLastReported && last !== undefined) this.#handlers?.onNotice(last);
  }
}

let db: LossyDatabase;
let world: World;
let container: string;
beforeAll(async () => {
  let engine: Promise<PGlite> | undefined;
  const open = await migratedEngine();
  db = new LossyDatabase(() => {
    engine ??= open();
    return engine;
  });
  world = await World.open({ logLevel: 'silent', db });
  await world.listen();
  const body = creation(await world.client());
  container = (await world.call('POST', '/server-containers', { as: 'owner', body })).body.id;
  await eventually(async () => {
    const { body } = await world.call('GET', `/server-containers/${container}`, { as: 'owner' });
    expect([body.status, body.health]).toEqual(['active', 'healthy']);
  });
});
afterAll(() => world.close());
beforeEach(() => db.listenAgain());

const follow = async (headers: Record<string, string> = {}) =>
  await listen(`${await world.listen()}/server-containers/${container}/events`, {
    authorization: `Bearer ${await world.issuer.token('viewer')}`,
    ...headers,
  });
/** Adds events in one transaction, and returns their ids. */
const add = async (count: number): Promise<string[]> => {
  const before = await newestEvent(db);
  await sql`insert into container_events (container_id, kind, status)
    select ${container}, 'changed', 'active' from generate_series(1, ${count}::int)`.execute(db);
  const page = { cursor: before, limit: count, order: 'asc' } as const;
  return (await listEvents(db, { container }, page)).map(({ id }) => id);
};

// Up to 5,000 missed events are read once for all streams; beyond that, each stream reads alone.
test.each([2, 5_001])(
  'after a break, open and new streams have the %i events that were missed',
  async (count) => {
    const open = await follow();
    const [before = ''] = await add(1);
    await eventually(() => expect(open.lastId()).toBe(before));
    db.loseNotices();
    const missed = await add(count);
    db.listenAgain();
    await eventually(() => expect(open.lastId()).toBe(missed.at(-1)));
    const later = await follow({ 'last-event-id': before });
    await eventually(() => expect(later.text()).toContain('retry'));
    const after = await add(1);
    await eventually(() => expect([open.lastId(), later.lastId()]).toEqual([...after, ...after]));
    expect(later.ids()).toEqual([...missed, ...after]);
    expect(open.ids().slice(-count - 1)).toEqual([...missed, ...after]);
    for (const stream of [open, later]) stream.stop.abort();
  },
);

test('a stream reads each page of the events that it has missed once', async () => {
  const missed = vi.spyOn(EventHub.prototype, 'missed');
  const [before = ''] = await add(1);
  const newest = (await add(1_001)).at(-1);
  const stream = await follow({ 'last-event-id': before });
  await eventually(() => expect(stream.lastId()).toBe(newest));
  const reads = Map.groupBy(missed.mock.calls, ([subscription]) => subscription);
  missed.mockRestore();
  for (const calls of reads.values()) {
    const cursors = calls.map(([, after]) => after);
    expect(cursors).toEqual([...new Set(cursors)]);
  }
  expect(Math.max(...[...reads.values()].map((calls) => calls.length))).toBeGreaterThan(1);
  stream.stop.abort();
});

test('an event that is reported as soon as listening has begun again hides none of those missed before it', async () => {
  const open = await follow();
  const [before = ''] = await add(1);
  await eventually(() => expect(open.lastId()).toBe(before));
  db.loseNotices();
  const missed = await add(3);
  db.listenAgain(true);
  await eventually(() => expect(open.lastId()).toBe(missed.at(-1)));
  expect(open.ids().slice(-3)).toEqual(missed);
  open.stop.abort();
});

test('an event that is reported after a break hides none of those missed, even while an earlier one is being read', async () => {
  const open = await follow();
  const [before = ''] = await add(1);
  await eventually(() => expect(open.lastId()).toBe(before));
  db.loseNotices();
  const added = await add(4);
  const release = await db.hold();
  db.reportFirst();
  db.listenAgain(true);
  release();
  await eventually(() => expect(open.lastId()).toBe(added.at(-1)));
  expect(open.ids().slice(-4)).toEqual(added);
  open.stop.abort();
});
