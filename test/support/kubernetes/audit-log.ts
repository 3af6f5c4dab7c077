import { readFileSync } from 'node:fs';
import { z } from 'zod';

export interface ApiRequest {
  readonly user: string;
  /** The pod to which the user's token belongs; `null`: to none. */
  readonly pod: string | null;
  readonly verb: string;
  /** `null`: no resource, but a path such as `/readyz`. */
  readonly resource: string | null;
  readonly code: number;
  /** When it was received; milliseconds since 1970. */
  readonly at: number;
}

const auditEvent = z.object({
  user: z.object({
    username: z.string(),
    extra: z.object({ 'authentication.kubernetes.io/pod-name': z.array(z.string()).default([]) }).optional(),
  }),
  verb: z.string(),
  objectRef: z.object({ resource: z.string() }).optional(),
  responseStatus: z.object({ code: z.number() }),
  requestReceivedTimestamp: z.string(),
});

/** The requests in an audit log of an API server, in the order of their ends. A watch is in it once it has ended. */
export function readAuditLog(file: string): ApiRequest[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.slice(0, -1).map((line) => {
    const { user, verb, objectRef, responseStatus, requestReceivedTimestamp } = auditEvent.parse(
      JSON.parse(line),
    );
    return {
      user: user.username,
      pod: user.extra?.['authentication.kubernetes.io/pod-name'][0] ?? null,
      verb,
      resource: objectRef?.resource ?? null,
      code: responseStatus.code,
      at: Date.parse(requestReceivedTimestamp),
    };
  });
}
