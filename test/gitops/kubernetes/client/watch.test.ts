import { describe, expect, test } from 'vitest';
import { ChangeQueue } from '../../../../gitops/kubernetes/client/change-queue.ts';
import type { ObjectChange } from '../../../../gitops/kubernetes/client/contract.ts';
import type { KubernetesObject } from '../../../../gitops/kubernetes/client/kinds.ts';
import { ObjectCopy } from '../../../../gitops/kubernetes/client/object-copy.ts';
import { WatchDecoder } from '../../../../gitops/kubernetes/client/watch-events.ts';

const pod = (name: string, version: number, uid = name): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'a', uid, resourceVersion: String(version) },
});
const line = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;
const said = (changes: readonly ObjectChange[]) =>
  changes.map(({ type, object }) => `${type} ${object.metadata.uid}`);

describe('the decoder of a watch', () => {
  const decode = (chunks: readonly (string | Buffer)[]) => {
    const decoder = new WatchDecoder('Pod');
    return chunks.flatMap((chunk) => [...decoder.push(Buffer.from(chunk))]);
  };

  test('reads events however the bytes are cut, and drops a torn last line', () => {
    const bookmark = { kind: 'Pod', metadata: { resourceVersion: '9', creationTimestamp: null } };
    const text = line('ADDED', pod('é', 1)) + line('DELETED', pod('b', 2)) + line('BOOKMARK', bookmark);
    const whole = Buffer.from(`${text}{"type":"ADDED","obj`);
    const bytes = Array.from(whole, (_, index) => whole.subarray(index, index + 1));
    const expected = [
      { type: 'set', object: pod('é', 1) },
      { type: 'deleted', object: pod('b', 2) },
      { type: 'bookmark', resourceVersion: '9' },
    ];
    expect(decode([whole])).toEqual(expected);
    expect(decode(bytes)).toEqual(expected);
  });

  test('keeps the fieldsV1 of managed fields as text', () => {
    const entry = { manager: 'tagyard', operation: 'Apply', time: '2026-01-01T00:00:00Z' };
    const fieldsV1 = { 'f:spec': { 'k:{"name":"a"}': { '.': {} } } };
    const { metadata, ...rest } = pod('a', 1);
    const sent = { ...rest, metadata: { ...metadata, managedFields: [{ ...entry, fieldsV1 }] } };
    const kept = { ...metadata, managedFields: [{ ...entry, fieldsV1: JSON.stringify(fieldsV1) }] };
    expect(decode([line('MODIFIED', sent)])).toEqual([{ type: 'set', object: { ...rest, metadata: kept } }]);
  });

  test('gives an object of metadata alone its own kind', () => {
    const { metadata } = pod('a', 7);
    const partial = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata };
    expect(decode([line('MODIFIED', partial)])).toEqual([{ type: 'set', object: pod('a', 7) }]);
  });

  test('throws the Status of an error event', () => {
    const gone = { kind: 'Status', reason: 'Expired', code: 410, message: 'too old resource version' };
    expect(() => decode([line('ERROR', gone)])).toThrow(expect.objectContaining({ reason: 'expired' }));
    const unnamed = { kind: 'Status', code: 410, message: 'too old' };
    expect(() => decode([line('ERROR', unnamed)])).toThrow(expect.objectContaining({ reason: 'expired' }));
  });

  test.each(['{"type":"ADDED"', '{"type":"ADDED","object":{}}', '{"type":"NEW","object":{}}', 'null'])(
    'throws a retryable error for %s',
    (text) => {
      expect(() => decode([`${text}\n`])).toThrow(expect.objectContaining({ name: 'KubernetesRetryable' }));
    },
  );
});

describe('the copy of the objects', () => {
  const pods = (...objects: readonly KubernetesObject[]) => objects;

  test('returns what a listing changes, also an object that was replaced under its name', () => {
    const copy = new ObjectCopy();
    expect(said(copy.listed(pods(pod('a', 1), pod('b', 1), pod('c', 1)), '5'))).toEqual([
      'added a',
      'added b',
      'added c',
    ]);
    const known = copy.objects.get('a/a');
    expect(said(copy.listed(pods(pod('a', 1), pod('b', 7), pod('c', 8, 'd')), '9'))).toEqual([
      'changed b',
      'deleted c',
      'added d',
    ]);
    expect(copy.objects.get('a/a')).toBe(known);
    expect(said(copy.listed([], '10'))).toEqual(['deleted a', 'deleted b', 'deleted d']);
  });

  test('continues from the version of the last event, or of a bookmark', () => {
    const copy = new ObjectCopy();
    expect(copy.version).toBeNull();
    copy.listed([], '5');
    expect(said(copy.take({ type: 'set', object: pod('a', 6) }))).toEqual(['added a']);
    expect(said(copy.take({ type: 'set', object: pod('a', 7) }))).toEqual(['changed a']);
    expect(copy.version).toBe('7');
    expect(copy.take({ type: 'bookmark', resourceVersion: '30' })).toEqual([]);
    expect(copy.version).toBe('30');
    expect(said(copy.take({ type: 'deleted', object: pod('a', 31) }))).toEqual(['deleted a']);
    expect(copy.take({ type: 'deleted', object: pod('b', 32) })).toEqual([]);
    expect(copy.version).toBe('32');
  });

  test('has reached a version of an object once it has that one, a newer one, or the deletion', () => {
    const copy = new ObjectCopy();
    copy.listed(pods(pod('a', 9)), '20');
    expect(copy.has('a/a', '9')).toBe(true);
    expect(copy.has('a/a', '10')).toBe(false);
    expect(copy.has('a/gone', '20')).toBe(true);
    expect(copy.has('a/new', '21')).toBe(false);
  });
});

describe('the changes that a slow reader has not read', () => {
  const change = (type: ObjectChange['type'], object: KubernetesObject): ObjectChange => ({ type, object });

  test('are merged into one for each object', async () => {
    const end = new AbortController();
    const queue = new ChangeQueue(end.signal, () => undefined);
    for (let version = 1; version <= 100; version += 1) queue.push(change('changed', pod('a', version)));
    queue.push(change('added', pod('b', 101)));
    queue.push(change('changed', pod('b', 102)));
    queue.push(change('added', pod('c', 103)));
    queue.push(change('deleted', pod('c', 104)));
    queue.push(change('deleted', pod('d', 105)));
    queue.push(change('added', pod('d', 106, 'e')));
    const read: ObjectChange[] = [];
    for await (const one of queue) {
      read.push(one);
      if (read.length === 4) break;
    }
    expect(read).toEqual([
      change('changed', pod('a', 100)),
      change('added', pod('b', 102)),
      change('deleted', pod('c', 104)),
      change('changed', pod('d', 106, 'e')),
    ]);
  });

  test('are no longer awaited once the signal aborts', async () => {
    const end = new AbortController();
    let ends = 0;
    const queue = new ChangeQueue(end.signal, () => {
      ends += 1;
    });
    const read = (async () => {
      for await (const _ of queue) throw new Error('there is no change');
    })();
    end.abort();
    await read;
    expect(ends).toBeGreaterThan(0);
  });
});
