import { expect, test } from 'vitest';
import { handoverMail } from '../../../management/handover/message.ts';
import { renderHandover } from '../../../management/handover/page.ts';
import type { HandoverRecord } from '../../../management/handover/records.ts';

const A_LABELS = 'xn--mbel-gro-xya6t.example';
const UNICODE = 'möbel-groß.example';
/** Latin and Cyrillic in one label: it imitates another name. */
const MIXED = 'xn--pple-43d.example';

const recordOf = (domain: string): HandoverRecord => ({
  zone: domain,
  type: 'CNAME',
  name: `data.${domain}`,
  value: 'acme-origin.example.net',
  addresses: ['192.0.2.1'],
  purpose: 'Serves the tags from your own domain.',
  state: 'wrong',
  detail: `data.${domain} leads to 198.51.100.7`,
});
const pageOf = (...records: HandoverRecord[]) =>
  renderHandover({
    client: 'Acme',
    link: {
      recipients: [],
      expires_at: new Date('2026-01-02T00:00:00Z'),
      complete_at: null,
      mail: 'none',
      mail_at: null,
    },
    records,
    isComplete: false,
    checkedAt: new Date('2026-01-01T00:00:00Z'),
    sendsMail: false,
  });

test('the page shows names as people read them, and beside it what they type into DNS', () => {
  const page = pageOf(recordOf(A_LABELS));
  expect(page).toContain(`<h2>${UNICODE} <span class="soft">(${A_LABELS})</span></h2>`);
  expect(page).toContain(`aria-label="Records of ${UNICODE}"`);
  expect(page).toContain(`data.${UNICODE}<small>In DNS: <code>data.${A_LABELS}</code></small>`);
  expect(page).toContain(`<small>data.${UNICODE} leads to 198.51.100.7</small>`);
  expect(page).toContain('<td data-label="Value"><code>acme-origin.example.net</code>');
  expect(page.replaceAll(`<code>data.${A_LABELS}</code>`, '').replace(`(${A_LABELS})`, '')).not.toContain(
    'xn--',
  );
});

test('the page shows other names once, and those of mixed scripts as A-labels', () => {
  for (const domain of ['acme.example', MIXED]) {
    const page = pageOf(recordOf(domain));
    expect(page).toContain(`<h2>${domain}</h2>`);
    expect(page).toContain(`<td data-label="Name"><code>data.${domain}</code><small>Serves`);
    expect(page).not.toContain('In DNS:');
  }
});

test('the mail has both forms, and mixed scripts as A-labels', () => {
  const { subject, text } = handoverMail([A_LABELS, MIXED, 'acme.example'].map(recordOf));
  expect(text).toContain(`  data.${UNICODE} (data.${A_LABELS})  CNAME  acme-origin.example.net\n`);
  expect(text).toContain(`  data.${MIXED}  CNAME  acme-origin.example.net\n`);
  expect(text).toContain('  data.acme.example  CNAME  acme-origin.example.net\n');
  expect(subject).toBe('Your DNS records are set');
});
