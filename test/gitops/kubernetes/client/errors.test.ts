import { describe, expect, test } from 'vitest';
import {
  type FaultReason,
  faultOfAnswer,
  faultReason,
  KubernetesQuotaReached,
  KubernetesRefusal,
  KubernetesRetryable,
} from '../../../../gitops/kubernetes/client/errors.ts';

const status = (reason: string | undefined, message: string, causes: object[] = []) => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  ...(reason !== undefined && { reason }),
  message,
  details: { causes },
});

const fault = (code: number, body: unknown) =>
  faultOfAnswer({ what: 'apply Service a/b', status: code, body });

describe('a refusal of the API server', () => {
  const conflict = {
    reason: 'FieldManagerConflict',
    message: 'conflict with "kubectl"',
    field: '.spec.type',
  };
  const ending = {
    reason: 'NamespaceTerminating',
    message: 'namespace a is being terminated',
    field: 'metadata.namespace',
  };
  const cannot =
    'services "b" is forbidden: User "u" cannot patch resource "services" in API group "" in the namespace "a"';
  // The texts and codes are those of Kubernetes 1.36.
  test.each<
    [
      FaultReason,
      typeof KubernetesRetryable | typeof KubernetesRefusal | typeof KubernetesQuotaReached,
      number,
      object,
    ]
  >([
    ['managed', KubernetesRefusal, 409, status('Conflict', 'Apply failed with 1 conflict', [conflict])],
    ['changed', KubernetesRetryable, 409, status('Conflict', 'the object has been modified')],
    ['exists', KubernetesRetryable, 409, status('AlreadyExists', 'services "b" already exists')],
    ['forbidden', KubernetesRefusal, 403, status('Forbidden', cannot)],
    [
      'quota',
      KubernetesQuotaReached,
      403,
      status('Forbidden', 'services "b" is forbidden: exceeded quota: q, requested: count/services=1'),
    ],
    ['terminating', KubernetesRetryable, 403, status('Forbidden', 'unable to create new content', [ending])],
    [
      'denied',
      KubernetesRefusal,
      403,
      status('Forbidden', 'pods "b" is forbidden: violates PodSecurity "restricted:latest"'),
    ],
    [
      'denied',
      KubernetesRefusal,
      422,
      status(
        'Invalid',
        "services \"b\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
      ),
    ],
    [
      'denied',
      KubernetesRefusal,
      400,
      status('BadRequest', 'admission webhook "w.test" denied the request: no'),
    ],
    [
      'unavailable',
      KubernetesRetryable,
      500,
      status('InternalError', 'failed calling webhook "w.test": timeout'),
    ],
    [
      'unavailable',
      KubernetesRetryable,
      403,
      status('Forbidden', 'secrets "b" is forbidden: not yet ready to handle request'),
    ],
    [
      'busy',
      KubernetesRetryable,
      429,
      status('TooManyRequests', 'admission webhook "w.test" denied the request: slow down'),
    ],
    [
      'unavailable',
      KubernetesRetryable,
      503,
      status('ServiceUnavailable', 'admission webhook "w.test" denied the request: later'),
    ],
    [
      'busy',
      KubernetesRetryable,
      429,
      status(undefined, 'admission webhook "w.test" denied the request: no'),
    ],
    [
      'denied',
      KubernetesRefusal,
      403,
      status('Forbidden', 'admission webhook "w.test" denied the request: no'),
    ],
    ['changed', KubernetesRetryable, 409, status(undefined, 'conflict')],
    [
      'invalid',
      KubernetesRefusal,
      422,
      status('Invalid', 'Service "b" is invalid: spec.ports: Required value'),
    ],
    [
      'invalid',
      KubernetesRefusal,
      500,
      status(
        undefined,
        'failed to create typed patch object (a/b; /v1, Kind=Service): .spec.x: field not declared in schema',
      ),
    ],
    ['absent', KubernetesRetryable, 404, status('NotFound', 'namespaces "a" not found')],
    [
      'absent',
      KubernetesRefusal,
      404,
      status('NotFound', 'the server could not find the requested resource'),
    ],
    ['unauthorized', KubernetesRefusal, 401, status('Unauthorized', 'Unauthorized')],
    ['expired', KubernetesRetryable, 410, status('Expired', 'too old resource version: 1 (2)')],
    ['busy', KubernetesRetryable, 429, status('TooManyRequests', 'too many requests')],
    ['unavailable', KubernetesRetryable, 503, status('ServiceUnavailable', 'the server is currently unable')],
    ['unavailable', KubernetesRetryable, 504, status('Timeout', 'request did not complete')],
  ])('is %s, of type %o, for status %i', (reason, type, code, body) => {
    const error = fault(code, body);
    expect(faultReason(error)).toBe(reason);
    expect(error).toBeInstanceOf(type);
    expect(error.message).toMatch(/^Kubernetes: apply Service a\/b: /);
  });

  test('names the right that is missing, and the managers of contested fields', () => {
    expect(fault(403, status('Forbidden', cannot)).message).toBe(
      'Kubernetes: apply Service a/b: the account u may not patch "services" in API group "" in the namespace "a". Give it this right (RBAC)',
    );
    expect(fault(409, status('Conflict', 'Apply failed', [conflict])).message).toMatch(
      /other managers own \.spec\.type \(conflict with "kubectl"\)\./,
    );
  });

  test('is judged by what it states, also with members that are null', () => {
    const empty = { reason: null, message: null, field: null };
    const body = { ...status('Conflict', 'Apply failed', [empty, conflict]), metadata: null };
    expect(fault(409, body).message).toMatch(/other managers own \.spec\.type/);
    const bare = {
      kind: 'Status',
      code: null,
      reason: null,
      message: 'busy',
      details: { retryAfterSeconds: null },
    };
    expect(fault(429, bare)).toMatchObject({
      reason: 'busy',
      message: 'Kubernetes: apply Service a/b: busy',
    });
    expect(faultReason(fault(409, '<html>'))).toBe('changed');
  });

  test('is judged by its code where a proxy in front has answered, and keeps the pause that it asks for', () => {
    expect(faultReason(fault(502, '<html>'))).toBe('unavailable');
    expect(faultReason(fault(403, null))).toBe('denied');
    expect(fault(403, null).message).toMatch(/answered 403 without a Status\. A proxy before the API server/);
    for (const bare of [{ kind: 'Status' }, { kind: 'Status', message: null }]) {
      expect(fault(403, bare).message).toMatch(
        /answered 403 without a message\. A proxy before the API server/,
      );
    }
    const busy = faultOfAnswer({ what: 'get', status: 429, body: null, retryAfter: 7 });
    expect(busy).toMatchObject({ reason: 'busy', retryAfter: 7 });
    expect(faultReason(new Error('another'))).toBeNull();
  });
});
