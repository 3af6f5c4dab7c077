import type { z } from 'zod';
import { demandTag, shortDigest } from '../view/etag.ts';
import type { WebhookRow } from './webhooks.repository.ts';
import { typeOf, type webhookView } from './webhooks.schema.ts';

export function presentWebhook(row: WebhookRow): z.output<typeof webhookView> {
  const { id, client_id, organisation_id, url, events, enabled, paused_until, notice, notice_at } = row;
  return {
    id,
    client: client_id,
    organisation: organisation_id,
    url,
    events: events.map(typeOf) as z.output<typeof webhookView>['events'], // no webhook subscribes to tests
    enabled,
    pausedUntil: paused_until === null || paused_until < new Date() ? null : paused_until.toISOString(),
    notice: notice === null || notice_at === null ? null : { at: notice_at.toISOString(), text: notice },
    createdAt: row.created_at.toISOString(),
  };
}

/**
 * `"<settings>.<whole answer>"`, a strong validator of two digests. `If-Match` compares only the first one, so that a
 * change isn't refused because deliveries have failed since.
 */
export function webhookTag(row: WebhookRow): string {
  return `"${settingsDigest(row)}.${shortDigest(JSON.stringify(presentWebhook(row)))}"`;
}

/** Throws `precondition_failed` unless an `If-Match` names a webhook with these settings. */
export function demandWebhookTag(ifMatch: string | undefined, row: WebhookRow): void {
  const current = settingsDigest(row);
  demandTag(ifMatch, (tag) => tag.startsWith(`"${current}.`));
}

function settingsDigest({ url, events, enabled }: WebhookRow): string {
  return shortDigest(JSON.stringify([url, events, enabled]));
}
