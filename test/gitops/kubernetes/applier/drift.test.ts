import { describe, expect, test } from 'vitest';
import {
  foreignFields,
  objectDrift,
  removalPatch,
} from '../../../../gitops/kubernetes/applier/state/drift.ts';
import type { KubernetesObject, ManagedFields } from '../../../../gitops/kubernetes/client/kinds.ts';

const LABELS = { 'tagyard/site': 'acme-shop' };
const container = (name: string) => ({
  name,
  image: 'tag-server:1',
  env: [{ name: 'PORT', value: '20000' }],
});
const template = (...containers: object[]) => ({ metadata: { labels: LABELS }, spec: { containers } });
const deployment = (spec: object, metadata: object = {}): KubernetesObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'shops', labels: LABELS, ...metadata },
  spec: { minReadySeconds: 5, ...spec },
});

const SITE = { 'f:tagyard/site': {} };
const ENV = { 'k:{"name":"PORT"}': { '.': {}, 'f:name': {}, 'f:value': {} } };
const CONTAINER = { '.': {}, 'f:name': {}, 'f:image': {}, 'f:env': ENV };
const ours = (containers: object = { 'k:{"name":"tag"}': CONTAINER }, spec: object = {}): ManagedFields => ({
  manager: 'tagyard',
  operation: 'Apply',
  fieldsV1: JSON.stringify({
    'f:metadata': { 'f:labels': SITE },
    'f:spec': {
      'f:minReadySeconds': {},
      'f:template': { 'f:metadata': { 'f:labels': SITE }, 'f:spec': { 'f:containers': containers } },
      ...spec,
    },
  }),
});
const theirs = (fieldsV1: object, more: Partial<ManagedFields> = {}): ManagedFields => ({
  manager: 'kubectl-edit',
  operation: 'Update',
  fieldsV1: JSON.stringify(fieldsV1),
  ...more,
});

const applied = deployment({ template: template(container('tag')) });
const found = (managedFields: ManagedFields[], object: KubernetesObject = applied, more: object = {}) => ({
  ...object,
  metadata: { ...object.metadata, resourceVersion: '7', managedFields, ...more },
});

describe('drift of an object in a cluster', () => {
  test('is nothing as long as all its fields are ours, whatever the API server added', () => {
    const defaulted = deployment({ template: template(container('tag')), revisionHistoryLimit: 10 });
    expect(objectDrift(applied, found([ours()], defaulted))).toBeNull();
  });

  test('is a foreign label that hides an object from the watched copies, and no other label', () => {
    const set = { 'f:metadata': { 'f:labels': { 'f:tagyard/gateway': {}, 'f:team': {} } } };
    const labelled = deployment(applied.spec as object, {
      labels: { ...LABELS, 'tagyard/gateway': 'site', team: 'web' },
    });
    const hidden = found([ours(), theirs(set)], labelled);
    expect(objectDrift(applied, hidden)).toBe(
      'added from outside: metadata.labels[tagyard/gateway] (by kubectl-edit)',
    );
    expect(foreignFields(hidden).map(({ isRemoved }) => isRemoved)).toEqual([true, false]);
  });

  test('is nothing in a Secret that was created without an apply, as earlier versions did, and only in a Secret', () => {
    const created = { ...ours(), operation: 'Update' } as const;
    const secret = { ...applied, kind: 'Secret' } as const;
    expect(objectDrift(secret, found([created], secret))).toBeNull();
    expect(objectDrift(applied, found([created]))).toMatch(/^changed from outside: /);
  });

  test('names the fields that another manager has changed or removed', () => {
    const entry = { '.': {}, 'f:name': {}, 'f:env': { 'k:{"name":"PORT"}': { '.': {}, 'f:name': {} } } };
    const managed = [ours({ 'k:{"name":"tag"}': entry }), theirs({ 'f:spec': {} })];
    expect(objectDrift(applied, found(managed))).toBe(
      'changed from outside: spec.template.spec.containers[tag].image, spec.template.spec.containers[tag].env[PORT].value',
    );
    const two = deployment({ template: template(container('tag'), container('other')) });
    expect(objectDrift(two, found([ours()]))).toBe(
      'changed from outside: spec.template.spec.containers[other]',
    );
  });

  test('names every member if others have removed managedFields', () => {
    expect(objectDrift(applied, found([]))).toBe('changed from outside: metadata, spec');
  });

  test('is the deletion of the object', () => {
    const ending = found([ours()], applied, { deletionTimestamp: '2026-01-01T00:00:00Z' });
    expect(objectDrift(applied, ending)).toBe('being deleted');
  });

  test('includes additions that change what the object does; they are removed from the last to the first', () => {
    const added = (name: string) => ({ [`k:{"name":"${name}"}`]: { '.': {}, 'f:image': {} } });
    const sidecars = theirs({
      'f:spec': {
        'f:template': { 'f:spec': { 'f:containers': { ...added('a'), ...added('b') } } },
        'f:paused': {},
      },
    });
    const containers = [container('a'), container('tag'), container('b')];
    const changed = found(
      [ours(), sidecars],
      deployment({ template: template(...containers), paused: true }),
    );
    expect(objectDrift(applied, changed)).toBe(
      'added from outside: spec.template.spec.containers[a] (by kubectl-edit), spec.template.spec.containers[b] (by kubectl-edit), spec.paused (by kubectl-edit)',
    );
    expect(removalPatch(changed, foreignFields(changed))).toEqual([
      { op: 'test', path: '/metadata/resourceVersion', value: '7' },
      { op: 'remove', path: '/spec/template/spec/containers/2' },
      { op: 'remove', path: '/spec/template/spec/containers/0' },
      { op: 'remove', path: '/spec/paused' },
    ]);
  });

  test('excludes additions to the object’s metadata, which are found but stay', () => {
    const label = theirs({ 'f:metadata': { 'f:labels': { 'f:team': {} } } }, { manager: 'kubectl-label' });
    const labelled = found(
      [ours(), label],
      deployment(
        { template: template(container('tag')) },
        {
          labels: { ...LABELS, team: 'shops' },
        },
      ),
    );
    expect(objectDrift(applied, labelled)).toBeNull();
    expect(foreignFields(labelled)).toEqual([
      {
        manager: 'kubectl-label',
        path: 'metadata.labels.team',
        pointer: '/metadata/labels/team',
        isRemoved: false,
      },
    ]);
  });

  test('excludes what controllers, an autoscaler and a restart of the pods set', () => {
    const RESTARTED = 'kubectl.kubernetes.io/restartedAt';
    const restarted = {
      ...template(container('tag')),
      metadata: { labels: LABELS, annotations: { [RESTARTED]: 'now' } },
    };
    const object = deployment({ template: restarted, replicas: 3 }, { annotations: { revision: '2' } });
    const managed = [
      ours(),
      theirs(
        { 'f:metadata': { 'f:annotations': { 'f:revision': {} } } },
        { manager: 'kube-controller-manager' },
      ),
      theirs({ 'f:spec': { 'f:replicas': {} } }, { manager: 'kubectl', subresource: 'scale' }),
      theirs({ 'f:status': { 'f:replicas': {} } }, { manager: 'other', subresource: 'status' }),
      theirs({
        'f:spec': {
          'f:template': { 'f:metadata': { 'f:annotations': { '.': {}, [`f:${RESTARTED}`]: {} } } },
        },
      }),
    ];
    expect(foreignFields(found(managed, object))).toEqual([]);
  });

  test('isn’t what others have set to the same value', () => {
    const same = theirs({ 'f:spec': { 'f:minReadySeconds': {} } }, { manager: 'kubectl' });
    expect(objectDrift(applied, found([ours(), same]))).toBeNull();
  });
});
