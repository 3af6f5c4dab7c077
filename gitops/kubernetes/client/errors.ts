import { z } from 'zod';
import { QuotaReachedError, RetryableError, TerminalError } from '../../../base/errors.ts';

/**
 * Why a call failed.
 * - `absent`: the object or its namespace doesn't exist, or the kind isn't served
 * - `exists`: an object to create exists already
 * - `changed`: the object has another version or uid than the one given
 * - `managed`: other field managers own fields that an apply sets
 * - `forbidden`: RBAC gives our account no such right
 * - `quota`: a ResourceQuota is used up
 * - `denied`: a webhook, a policy, Pod Security or a proxy before the API server has refused the call
 * - `terminating`: the namespace is being deleted
 * - `invalid`: the object breaks its schema or its rules
 * - `unauthorized`: the API server doesn't accept our credentials
 * - `expired`: the version of a watch or of a next page is no longer kept
 * - `busy`: too many requests
 * - `unavailable`: the API server answers, but can't do it now
 * - `unreachable`: no answer
 */
export type FaultReason =
  | 'absent'
  | 'exists'
  | 'changed'
  | 'managed'
  | 'forbidden'
  | 'quota'
  | 'denied'
  | 'terminating'
  | 'invalid'
  | 'unauthorized'
  | 'expired'
  | 'busy'
  | 'unavailable'
  | 'unreachable';

/** May succeed later without a change by an operator. */
export class KubernetesRetryable extends RetryableError {
  override name = 'KubernetesRetryable';
  readonly reason: FaultReason;
  constructor(
    reason: FaultReason,
    message: string,
    options: ErrorOptions & { retryAfter?: number | undefined } = {},
  ) {
    super(message, options);
    this.reason = reason;
  }
}

/** Fails until an operator changes something. */
export class KubernetesRefusal extends TerminalError {
  override name = 'KubernetesRefusal';
  readonly reason: FaultReason;
  constructor(reason: FaultReason, message: string, options: ErrorOptions = {}) {
    super(message, options);
    this.reason = reason;
  }
}

/** A ResourceQuota is used up. */
export class KubernetesQuotaReached extends QuotaReachedError {
  override name = 'KubernetesQuotaReached';
  readonly reason = 'quota' satisfies FaultReason;
}

/** The reason of an error of the client; `null` for other errors. */
export function faultReason(error: unknown): FaultReason | null {
  const isOurs =
    error instanceof KubernetesRetryable ||
    error instanceof KubernetesRefusal ||
    error instanceof KubernetesQuotaReached;
  return isOurs ? error.reason : null;
}

const cause = z.looseObject({
  reason: z.string().nullish(),
  message: z.string().nullish(),
  field: z.string().nullish(),
});
/** `metav1.Status`, as far as it is read. */
const statusBody = z.looseObject({
  kind: z.literal('Status'),
  code: z.number().nullish(),
  reason: z.string().nullish(),
  message: z.string().nullish(),
  details: z
    .looseObject({
      causes: z.array(cause).nullish(),
      retryAfterSeconds: z.number().nullish(),
    })
    .nullish(),
});
type StatusBody = z.infer<typeof statusBody>;

/**
 * RBAC's refusal has no cause in its `Status`, only this text. Source: k8s.io/apiserver,
 * handlers/responsewriters/errors.go.
 */
const RBAC = /User "([^"]*)" cannot (\S+) (?:resource|path) ("[^"]*"(?: in API group "[^"]*")?)(.*)$/s;
/** Source: k8s.io/apiserver, admission/plugin/resourcequota/controller.go. */
const QUOTA = /(exceeded quota|failed quota|status unknown for quota|insufficient quota)/;
/** Sources: k8s.io/apiserver, admission/plugin/{webhook,policy}; k8s.io/pod-security-admission. */
const ADMISSION = /(admission webhook "[^"]*" denied|denied request|violates PodSecurity)/;
/** While the API server starts. Source: k8s.io/apiserver, admission/plugin/{namespace/lifecycle,webhook/generic}. */
const STARTING = /is forbidden: not yet ready to handle request/;

/** An apply with a member that the schema doesn't have is answered with 500 and no reason. */
const UNTYPED = /^failed to create typed patch object/;

interface Refused {
  /** What was asked, as in `apply Deployment a/b`. */
  readonly what: string;
  readonly status: number;
  /** The body, parsed as JSON; `null` if it isn't JSON. */
  readonly body: unknown;
  /** Seconds of the header `Retry-After`. */
  readonly retryAfter?: number | undefined;
}

type ClusterFault = KubernetesRetryable | KubernetesRefusal | KubernetesQuotaReached;

/** The error for an answer that isn't a success, by the reason and the causes of its `Status`. */
export function faultOfAnswer({ what, status, body, retryAfter }: Refused): ClusterFault {
  const parsed = statusBody.safeParse(body);
  const state: StatusBody = parsed.success ? parsed.data : { kind: 'Status' };
  const said = state.message ?? `answered ${status} without a ${parsed.success ? 'message' : 'Status'}`;
  const wait = retryAfter ?? state.details?.retryAfterSeconds ?? undefined;
  const text = `Kubernetes: ${what}: ${said}`;
  const causes = state.details?.causes ?? [];
  const later = (reason: FaultReason, message: string) =>
    new KubernetesRetryable(reason, message, { retryAfter: wait });
  const refused = (reason: FaultReason, message: string) => new KubernetesRefusal(reason, message);

  const code = state.code ?? status;
  // A webhook may also answer that it can't judge now.
  if (ADMISSION.test(said) && code !== 429 && code < 500) {
    return refused('denied', `${text}. Admission in the cluster refuses the object: change it or its rule`);
  }
  if (UNTYPED.test(said)) return refused('invalid', text);
  switch (state.reason ?? reasonOfCode(code)) {
    case 'NotFound':
      // If it is a client's namespace, the next attempt creates it.
      return said.startsWith('namespaces "')
        ? later(
            'absent',
            `${text}. A client’s namespace is created at the next attempt; create that of KUBERNETES_NAMESPACE yourself`,
          )
        : refused('absent', text);
    case 'AlreadyExists':
      return later('exists', text);
    case 'Conflict': {
      const managers = causes.filter(({ reason }) => reason === 'FieldManagerConflict');
      if (managers.length === 0) return later('changed', text);
      const fields = managers.map((one) => `${one.field} (${one.message})`).join(', ');
      const remedy =
        'Make the other managers give up these fields, or set adopt: true in the manifest to take them over';
      return refused('managed', `Kubernetes: ${what}: other managers own ${fields}. ${remedy}`);
    }
    case 'Forbidden':
      return forbidden({ what, said, isSaid: typeof state.message === 'string', text, causes });
    case 'Unauthorized':
      return refused('unauthorized', `${text}. The credentials are wrong or expired: see KUBECONFIG`);
    case 'Expired':
    case 'Gone':
      return later('expired', text);
    case 'TooManyRequests':
      return later('busy', text);
    case 'Invalid':
    case 'BadRequest':
    case 'UnsupportedMediaType':
    case 'NotAcceptable':
    case 'MethodNotAllowed':
    case 'RequestEntityTooLarge':
      return refused('invalid', text);
    default:
      return later('unavailable', text);
  }
}

function forbidden({
  what,
  said,
  isSaid,
  text,
  causes,
}: {
  what: string;
  said: string;
  /** False: the answer had no message, so `said` is ours. */
  isSaid: boolean;
  text: string;
  causes: readonly z.infer<typeof cause>[];
}): ClusterFault {
  if (causes.some(({ reason }) => reason === 'NamespaceTerminating')) {
    return new KubernetesRetryable('terminating', `${text}. It is tried again once the namespace is gone`);
  }
  if (STARTING.test(said)) return new KubernetesRetryable('unavailable', text);
  if (QUOTA.test(said)) {
    return new KubernetesQuotaReached(`${text}. Raise the ResourceQuota, or remove what uses it`);
  }
  const right = RBAC.exec(said);
  if (!isSaid) {
    return new KubernetesRefusal(
      'denied',
      `${text}. A proxy before the API server may refuse the call: see the server of KUBECONFIG`,
    );
  }
  if (right === null) {
    return new KubernetesRefusal(
      'denied',
      `${text}. Admission in the cluster refuses the object: change it or its rule`,
    );
  }
  const [, user, verb, resource, where] = right;
  const scope = where?.trim() ?? '';
  const message = `Kubernetes: ${what}: the account ${user} may not ${verb} ${resource} ${scope}`.trimEnd();
  return new KubernetesRefusal('forbidden', `${message}. Give it this right (RBAC)`);
}

/** The reason for an answer that names none: from a proxy before the API server, or a webhook's own status. */
function reasonOfCode(code: number): string {
  const reasons: Readonly<Record<number, string>> = {
    400: 'BadRequest',
    401: 'Unauthorized',
    403: 'Forbidden',
    404: 'NotFound',
    405: 'MethodNotAllowed',
    406: 'NotAcceptable',
    409: 'Conflict',
    410: 'Gone',
    413: 'RequestEntityTooLarge',
    415: 'UnsupportedMediaType',
    422: 'Invalid',
    429: 'TooManyRequests',
  };
  return reasons[code] ?? 'Unknown';
}
