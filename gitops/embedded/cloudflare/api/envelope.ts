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
  noRoute: [404, 7003],
  // Not documented: taken from the API's throttling page.
  rateLimited: [429, 10429],
  // Not documented for these endpoints: "failed to parse request body".
  malformedBody: [400, 9207],
  internal: [500, 10013],
  invalidRecord: [400, 1004],
  invalidAddress: [400, 9005],
  hostTaken: [400, 81053],
  recordExists: [400, 81057],
  identicalRecord: [400, 81058],
  unknownRecord: [404, 81044],
  unknownScript: [404, 10007],
  unknownRoute: [404, 10009],
  routeExists: [409, 10020],
  invalidPattern: [400, 10022],
  unknownKey: [404, 10009],
  unknownNamespace: [404, 10009],
  unknownBucket: [404, 10006],
  unknownObject: [404, 10007],
  namespaceExists: [400, 10014],
  // Not documented: invalid keys, sizes and expirations.
  invalidKv: [400, 10019],
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
