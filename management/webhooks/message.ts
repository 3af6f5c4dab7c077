import type { Outgoing } from './outbox.repository.ts';
import { typeOf } from './webhooks.schema.ts';

/**
 * The id and the body of a delivery's message. A message about an event has the same ones each time that it is sent.
 */
export function messageOf(delivery: Outgoing): { id: string; body: string } {
  const { id, kind, event_seq: seq, queued_at } = delivery;
  if (kind === 'test') {
    const data = { text: 'a test' };
    return { id: `msg_test_${id}`, body: bodyOf('test', queued_at, data) };
  }
  const {
    position,
    container_id,
    client_id,
    at,
    status,
    state,
    reason,
    detail,
    actor,
    request_id,
    revision,
  } = delivery;
  const data = {
    id: position,
    containerId: container_id,
    client: client_id,
    clientId: client_id,
    at,
    kind,
    status,
    state,
    reason,
    detail,
    actor,
    requestId: request_id,
    revision,
  };
  return { id: `msg_${seq}`, body: bodyOf(kind, at ?? queued_at, data) };
}

function bodyOf(kind: Outgoing['kind'], at: Date, data: object): string {
  return JSON.stringify({ type: typeOf(kind), timestamp: at.toISOString(), data });
}
