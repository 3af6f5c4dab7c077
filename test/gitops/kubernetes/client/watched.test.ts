import { afterEach, describe, expect, test } from 'vitest';
import { keyOfObject } from '../../../../gitops/kubernetes/client/address.ts';
import type { ObjectSelection } from '../../../../gitops/kubernetes/client/contract.ts';
import { listPaged } from '../../../../gitops/kubernetes/client/paging.ts';
import { Transport } from '../../../../gitops/kubernetes/client/transport.ts';
import { WatchedCopy } from '../../../../gitops/kubernetes/client/watched.ts';
import { eventually } from '../../../support/eventually.ts';
import { type Answerer, ScriptedServer } from '../../../support/kubernetes/scripted-server.ts';
import { testClock } from '../../../support/test-clock.ts';

const PODS = { kind: 'Pod', namespace: 'a' } as const;
const pod = (name: string, version: number) => ({
  kind: 'Pod',
  metadata: { name, namespace: 'a', uid: name, resourceVersion: String(version) },
});
const gone = { kind: 'Status', reason: 'Expired', code: 410, message: 'too old' };
const line = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;

const json =
  (body: object, status = 200): Answerer =>
  (_, response) =>
    void response.writeHead(status).end(JSON.stringify(body));
const list = (items: readonly object[], resourceVersion: string, next = '') =>
  json({ kind: 'PodList', metadata: { resourceVersion, continue: next }, items });
/** A watch that sends the text and ends, or stays open. */
const watch =
  (text: string, isOpen = false): Answerer =>
  (_, response) => {
    response.writeHead(200).write(text);
    if (!isOpen) response.end();
  };
const quiet = watch('\n', true);

const opened: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

async function serve(...answers: readonly Answerer[]) {
  const server = await ScriptedServer.start(...answers);
  const transport = new Transport(server.config);
  opened.push(
    () => server[Symbol.asyncDispose](),
    () => transport.close(),
  );
  /** What each request was: a watch from a version, or a page of a listing. */
  const asked = () =>
    server.seen.map(({ url: { searchParams } }) =>
      searchParams.get('watch') === 'true'
        ? `watch ${searchParams.get('resourceVersion')}`
        : `list ${searchParams.get('continue') ?? ''}`.trim(),
    );
  /** How many objects each request asked for; `null`: all. */
  const limits = () => server.seen.map(({ url: { searchParams } }) => searchParams.get('limit'));
  return { transport, asked, limits };
}

test('a listing begins again when the token of its next page has expired, and has objects of one version only', async () => {
  const { transport, asked } = await serve(
    list([pod('old', 1)], '5', 'p2'),
    json(gone, 410),
    list([pod('a', 6)], '9', 'p2'),
    list([pod('b', 7)], '9'),
  );
  const options = { pageSize: 1, signal: AbortSignal.timeout(60_000) };
  const { items, resourceVersion } = await listPaged(transport, PODS, options);
  expect(items.map(keyOfObject)).toEqual(['a/a', 'a/b']);
  expect(resourceVersion).toBe('9');
  expect(asked()).toEqual(['list', 'list p2', 'list', 'list p2']);
});

describe('a listing whose tokens have expired three times', () => {
  const tries = Array.from({ length: 3 }, () => [list([pod('old', 1)], '5', 'p2'), json(gone, 410)]).flat();
  const options = { pageSize: 1, signal: AbortSignal.timeout(60_000) };

  test('is read in one answer', async () => {
    const { transport, limits } = await serve(...tries, list([pod('a', 6), pod('b', 7)], '9'));
    const { items, resourceVersion } = await listPaged(transport, PODS, options);
    expect(items.map(keyOfObject)).toEqual(['a/a', 'a/b']);
    expect(resourceVersion).toBe('9');
    expect(limits()).toEqual([...Array(6).fill('1'), null]);
  });

  test('fails if the request without pages expires, too', async () => {
    const { transport, asked } = await serve(...tries, json(gone, 410));
    await expect(listPaged(transport, PODS, options)).rejects.toMatchObject({ reason: 'expired' });
    expect(asked()).toHaveLength(7);
  });
});

describe('a watched copy', () => {
  async function watched(selection: ObjectSelection, ...answers: readonly Answerer[]) {
    const { transport, asked } = await serve(...answers);
    const clock = testClock();
    const copy = new WatchedCopy(transport, selection, { clock, random: () => 0.5, pageSize: 500 });
    opened.push(() => copy.close());
    /** Resolves when these requests were made; pauses between them end at once. */
    const asks = (...expected: readonly string[]) =>
      eventually(() => {
        clock.advance(100);
        expect(asked()).toEqual(expected);
      });
    return { copy, clock, asks };
  }

  test('continues from the last whole line of a watch that was cut off', async () => {
    const torn = line('ADDED', pod('b', 8)) + line('MODIFIED', pod('c', 9)).slice(0, -20);
    const { copy, asks } = await watched(PODS, list([pod('a', 1)], '5'), watch(torn), quiet);
    await asks('list', 'watch 5', 'watch 8');
    expect([...copy.objects.keys()]).toEqual(['a/a', 'a/b']);
  });

  test('has no more changes once it is closed, or for a reader that has ended', async () => {
    const { copy } = await watched(PODS, list([pod('a', 1)], '5'), quiet);
    const count = async (signal: AbortSignal) => {
      let changes = 0;
      for await (const _ of copy.changes(signal)) changes += 1;
      return changes;
    };
    expect(await count(AbortSignal.abort())).toBe(0);
    await copy.close();
    expect(await count(AbortSignal.timeout(60_000))).toBe(0);
  });

  test('reports that the server is unreachable if a watch breaks in the middle of its answer', async () => {
    const broken: Answerer = (_, response) => {
      response.writeHead(200).write(line('ADDED', pod('b', 8)), () => response.destroy());
    };
    const { copy } = await watched(PODS, list([pod('a', 1)], '5'), broken);
    await eventually(() => expect(copy.fault).not.toBeNull());
    expect(copy.fault).toMatchObject({
      name: 'KubernetesRetryable',
      reason: 'unreachable',
      message: expect.stringMatching(/^Kubernetes: watch Pod: no answer: /),
    });
  });

  test.each([
    ['an event', watch(line('ERROR', gone))],
    ['the status of the answer', json(gone, 410)],
  ])('lists again when %s says that its version has expired', async (_, expired) => {
    const { copy, asks } = await watched(
      PODS,
      list([pod('a', 1)], '5'),
      expired,
      list([pod('b', 8)], '9'),
      quiet,
    );
    await asks('list', 'watch 5', 'list', 'watch 9');
    expect([...copy.objects.keys()]).toEqual(['a/b']);
    expect(copy.fault).toBeNull();
  });

  test('pauses longer and longer between watches that end at once', async () => {
    const { clock, asks } = await watched(PODS, list([], '5'), watch(''));
    const pauses: number[] = [];
    for (let count = 1; count <= 5; count += 1) {
      const [pause] = await eventually(() => {
        const sleeps = clock.sleeps();
        // An open watch sleeps until its own deadlines, which are minutes away.
        expect(sleeps).toEqual([expect.toSatisfy((ms: number) => ms < 60_000)]);
        return sleeps;
      });
      pauses.push(pause ?? 0);
      clock.advance(pause ?? 0);
      await eventually(() => expect(clock.sleeps()).not.toEqual([0]));
    }
    expect(pauses).toEqual([550, 1_100, 2_200, 4_400, 5_500]);
    await asks('list', ...Array.from({ length: 6 }, () => 'watch 5'));
  });

  test.each([
    ['which asks for a longer pause than a minute', '2147484', 60_000],
    ['which asks for a shorter one', '20', 20_000],
  ])('pauses after an answer %s', async (_, seconds, pause) => {
    const busy: Answerer = (__, response) =>
      void response
        .writeHead(429, { 'retry-after': seconds })
        .end(JSON.stringify({ kind: 'Status', code: 429 }));
    const { clock, asks } = await watched(PODS, list([], '5'), busy, quiet);
    await eventually(() => expect(clock.sleeps()).toEqual([pause]));
    clock.advance(pause);
    await asks('list', 'watch 5', 'watch 5');
  });

  /** A copy that gathers events and has just read its first one. `send` continues the watch. */
  async function gathering() {
    let send = (_: string): void => {};
    const open: Answerer = (_, response) => {
      send = (text) => void response.write(text);
      send(line('ADDED', pod('a', 6)));
    };
    const { copy, clock } = await watched({ ...PODS, gatherMs: 200 }, list([], '5'), open);
    await eventually(() => expect(clock.sleeps()).toContain(200));
    return { copy, clock, send };
  }

  test('reads all events of its gathering time at once', async () => {
    const { copy, clock, send } = await gathering();
    expect([...copy.objects.keys()]).toEqual(['a/a']);
    send(line('ADDED', pod('b', 7)) + line('MODIFIED', pod('b', 8)));
    clock.advance(200);
    await eventually(() => expect([...copy.objects.keys()]).toEqual(['a/a', 'a/b']));
    await eventually(() => expect(clock.sleeps()).toContain(200));
  });

  test('gathers for 50 ms at most while a version is waited for', async () => {
    const { copy, clock, send } = await gathering();
    const address = { kind: 'Pod', namespace: 'a', name: 'b' } as const;
    const reached = copy.reached(address, '8', AbortSignal.timeout(60_000));
    send(line('ADDED', pod('b', 7)));
    await eventually(() => expect(clock.sleeps()).toContain(50));
    send(line('MODIFIED', pod('b', 8)));
    clock.advance(50);
    await reached;
  });

  test('applies in one read all that has come while it gathered, however much it is', async () => {
    const big = (version: number) => ({ ...pod(`p${version}`, version), text: 'x'.repeat(100_000) });
    const burst = Array.from({ length: 30 }, (_, index) => line('ADDED', big(index + 7)));
    const open: Answerer = (_, response) => {
      response.write(line('ADDED', pod('a', 6)), () => response.write(burst.join('')));
    };
    const { copy, clock } = await watched({ ...PODS, gatherMs: 200 }, list([], '5'), open);
    let reads = 0;
    await eventually(() => {
      if (clock.sleeps().includes(200)) reads += 1;
      clock.advance(200);
      expect(copy.objects.size).toBe(31);
    });
    expect(reads).toBeLessThan(10);
  });

  test('says why it cannot follow, until it can', async () => {
    const refused = {
      kind: 'Status',
      reason: 'Forbidden',
      message: 'pods is forbidden: User "u" cannot list resource "pods" in API group ""',
    };
    const { copy, asks } = await watched(PODS, json(refused, 403), list([], '5'), quiet);
    await eventually(() => expect(copy.fault).toMatchObject({ reason: 'forbidden' }));
    await expect(copy.ready(AbortSignal.abort())).rejects.toMatchObject({ reason: 'forbidden' });
    await asks('list', 'list', 'watch 5');
    await copy.ready(AbortSignal.timeout(60_000));
    await eventually(() => expect(copy.fault).toBeNull());
  });
});
