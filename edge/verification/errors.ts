/** Every error code of the verification worker, with its HTTP status and meaning. */
export const VERIFICATION_ERRORS = {
  malformed_request: [400, 'The request is not valid for this endpoint'],
  wrong_secret: [401, 'The x-secret header is missing or wrong'],
  secret_not_configured: [403, 'The worker has no VERIFICATION_SECRET, so it takes no request'],
  not_found: [404, 'There is nothing at this address'],
  method_not_allowed: [405, 'This path takes POST only'],
  body_too_large: [413, 'The request body is over 256 KiB, or has no content-length'],
} as const satisfies Record<string, readonly [status: number, title: string]>;

/** A refusal as problem+json (RFC 9457). By `service`, `tagyard doctor` knows that this worker has answered. */
export function refusal(
  code: keyof typeof VERIFICATION_ERRORS,
  requestId: string,
  detail?: string,
): Response {
  const [status, title] = VERIFICATION_ERRORS[code];
  const type = `urn:tagyard:problem:${code}`;
  const body = { type, title, status, code, service: 'verification', requestId };
  return Response.json(detail === undefined ? body : { ...body, detail }, {
    status,
    headers: {
      'content-type': 'application/problem+json',
      'x-request-id': requestId,
      ...(status === 405 ? { allow: 'POST' } : {}),
    },
  });
}
