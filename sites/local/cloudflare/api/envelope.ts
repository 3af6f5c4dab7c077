/**
 * Cloudflare's answer: an envelope around every JSON result, with numbered errors. The meaning of a code depends on
 * the endpoint: 10009 is a missing route under `/workers` and an unknown namespace under `/storage/kv`.
 */
interface Envelope {
  readonly success: boolean;
  readonly errors: readonly ApiMessage[];
  readonly messages: readonly ApiMessage[];
  readonly result: unknown;
  readonly result_info?: Readonly<Record<string, unknown>>;
}

interface ApiMessage {
  readonly code: number;
  readonly message: string;
  readonly error_chain?: readonly ApiMessage[];
}

export function success(result: unknown, info?: Readonly<Record<string, unknown>>): Envelope {
  return {
    success: true,
    errors: [],
    messages: [],
    result,
    ...(info === undefined ? {} : { result_info: info }),
  };
}

export function failure(error: ApiMessage): Envelope {
  return { success: false, errors: [error], messages: [], result: null };
}

/** HTTP status and error code of each fault, as in the real API. Codes without a documented source are marked. */
const FAULTS = {
  unauthenticated: [401, 10000],
  invalidHeader: [400, 6003],
  forbidden: [403, 9109],
  lacksPermission: [403, 10000],
  noRoute: [404, 7003],
  rateLimited: [429, 10500],
  // Not documented for these endpoints: "failed to parse request body".
  malformedBody: [400, 9207],
  internal: [500, 10013],
  invalidRecord: [400, 1004],
  invalidAddress: [400, 9005],
  hostTaken: [400, 81053],
  recordExists: [400, 81057],
  identicalRecord: [400, 81058],
  unknownRecord: [404, 81044],
  recordQuota: [400, 81045],
  unknownScript: [404, 10007],
  foreignDomain: [400, 100112],
  invalidDomain: [400, 100113],
  unknownDomain: [404, 100114],
  domainTaken: [409, 100116],
  domainHasRecords: [409, 100117],
  domainQuota: [403, 100122],
  invalidUpload: [400, 10006],
  invalidScriptName: [400, 10016],
  invalidScript: [400, 10021],
  unknownBinding: [404, 10056],
  noSubdomain: [400, 10063],
  unknownBoundNamespace: [400, 10041],
  unknownVersion: [404, 10071],
  invalidDeployment: [400, 10210],
  // Not documented.
  unknownDeployment: [404, 10212],
  unknownRouteScript: [400, 10019],
  unknownRoute: [404, 10009],
  routeExists: [409, 10020],
  invalidPattern: [400, 10022],
  routeQuota: [400, 10073],
  unknownKey: [404, 10009],
  unknownNamespace: [404, 10009],
  unknownBucket: [404, 10006],
  unknownObject: [404, 10007],
  bucketExists: [409, 10004],
  // Not documented.
  queueExists: [409, 11009],
  unknownQueue: [404, 11000],
  consumerExists: [409, 11004],
  namespaceExists: [400, 10014],
  // Not documented: invalid keys, sizes and expirations.
  invalidKv: [400, 10019],
  // Not documented: a second write of a key within a second is 429.
  keyBusy: [429, 10429],
} as const;

type Fault = keyof typeof FAULTS;

export class ApiError extends Error {
  override name = 'ApiError';
  readonly status: number;
  readonly body: Envelope;
  constructor(fault: Fault, message: string, chain?: readonly ApiMessage[]) {
    super(message);
    const [status, code] = FAULTS[fault];
    this.status = status;
    this.body = failure({ code, message, ...(chain === undefined ? {} : { error_chain: chain }) });
  }
}

/** One page of `items`, with the totals by which a caller knows that it has read all pages. */
export function page(items: readonly unknown[], number: number, perPage: number): Envelope {
  return pageOf(items.slice((number - 1) * perPage, number * perPage), items.length, number, perPage);
}

/** `slice` is already one page out of `total` items. */
export function pageOf(slice: readonly unknown[], total: number, number: number, perPage: number): Envelope {
  return success(slice, {
    page: number,
    per_page: perPage,
    count: slice.length,
    total_count: total,
    total_pages: Math.max(1, Math.ceil(total / perPage)),
  });
}
