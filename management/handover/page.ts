import { hash } from 'node:crypto';
import { shownHost, shownHostsIn } from '../../base/host-name.ts';
import { counted } from '../../base/text.ts';
import type { LinkRow } from './links.repository.ts';
import type { HandoverRecord } from './records.ts';

/** What the page of a link shows. */
export interface HandoverView {
  readonly client: string;
  readonly link: Pick<LinkRow, 'recipients' | 'expires_at' | 'complete_at' | 'mail' | 'mail_at'>;
  readonly records: readonly HandoverRecord[];
  readonly isComplete: boolean;
  readonly checkedAt: Date;
  readonly sendsMail: boolean;
}

const STYLE = `
:root { color-scheme: light dark; --ink: light-dark(#16211f, #e6edeb); --soft: light-dark(#586662, #9fb0ab);
  --line: light-dark(#d9e0de, #2f3b38); --page: light-dark(#f6f8f7, #111716); --card: light-dark(#fff, #18201e);
  --accent: light-dark(#0f766e, #5eead4); --good: light-dark(#15803d, #6ee7a0); --bad: light-dark(#b42318, #ff9c8f);
  --wait: light-dark(#92600a, #f5c46b); }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: clamp(1.25rem, 4vw, 3rem) clamp(1rem, 4vw, 2rem); }
h1 { margin: 0 0 .5rem; font-size: clamp(1.5rem, 4vw, 2rem); line-height: 1.2; }
h2 { margin: 2rem 0 .75rem; font-size: 1.1rem; overflow-wrap: anywhere; }
p { margin: 0 0 .75rem; max-width: 44rem; }
.soft { color: var(--soft); font-size: .925rem; }
.sum { display: flex; flex-wrap: wrap; gap: .75rem 1.25rem; align-items: center; margin: 1.5rem 0 0;
  padding: 1rem 1.25rem; border: 1px solid var(--line); border-left: 4px solid var(--wait); border-radius: .5rem; background: var(--card); }
.sum.done { border-left-color: var(--good); }
.sum p { margin: 0; flex: 1 1 16rem; }
button { padding: .55rem 1rem; border: 0; border-radius: .4rem; background: var(--accent); color: light-dark(#fff, #06231f);
  font: 600 .95rem/1.2 system-ui, sans-serif; cursor: pointer; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { width: 100%; table-layout: fixed; margin-bottom: 1.5rem; border-collapse: collapse; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; }
th, td { padding: .7rem .9rem; border-top: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th:nth-child(1) { width: 5.5rem; } thead th:nth-child(2) { width: 30%; } thead th:nth-child(3) { width: 34%; }
thead th { border-top: 0; color: var(--soft); font-size: .8rem; font-weight: 600; }
code { font: .875rem/1.5 ui-monospace, "Liberation Mono", monospace; overflow-wrap: anywhere; user-select: all; }
td small { display: block; margin-top: .3rem; color: var(--soft); font-size: .85rem; }
.state { white-space: nowrap; font-weight: 600; }
.right { color: var(--good); } .wrong { color: var(--bad); } .missing, .unknown { color: var(--wait); }
@media (max-width: 42rem) {
  thead { position: absolute; clip-path: inset(50%); height: 1px; width: 1px; overflow: hidden; }
  table, tbody, tr, td { display: block; width: 100%; }
  tr + tr { border-top: 1px solid var(--line); } td { border: 0; padding: .4rem .9rem; }
  td::before { content: attr(data-label); display: block; color: var(--soft); font-size: .8rem; }
}
`;

/** The page's content security policy: only its own style, and a form that leads back to the page. */
export const HANDOVER_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const STATES: Readonly<Record<HandoverRecord['state'], string>> = {
  right: '✓ Right',
  missing: '○ Not found',
  wrong: '✕ Other value',
  unknown: '? Not sure',
};

/** The page of a link. All text in it is escaped. */
export function renderHandover(view: HandoverView): string {
  const { client, records, isComplete, link } = view;
  const zones = Map.groupBy(records, ({ zone }) => zone);
  const right = records.filter(({ state }) => state === 'right').length;
  const sum = isComplete
    ? 'All records are right. Nothing more needs to be done; the records must stay.'
    : `${right} of ${counted(records.length, 'record')} ${right === 1 ? 'is' : 'are'} right. A change can take an hour until every resolver has it.`;
  return page(
    `DNS records for ${client}`,
    `<h1>DNS records for ${escaped(client)}</h1>
<p>Please set these records where the DNS of each domain is managed. You need no account here: this page checks what the
public resolvers answer. Select a name or a value with one click to copy it.</p>
${
  records.length === 0
    ? '<div class="sum done"><p>There is no record to set.</p></div>'
    : `<div class="sum${isComplete ? ' done' : ''}"><p role="status">${sum}</p>
<form method="get"><button name="check" value="now">Check now</button></form></div>`
}
${[...zones].map(([zone, those]) => zoneTable(zone, those)).join('\n')}
<p class="soft">${escaped(mailLine(view))}</p>
<p class="soft">Checked ${time(view.checkedAt)}. This link ends on ${time(link.expires_at)}; all who have it can see this page.</p>`,
  );
}

/** The answer for a link that doesn't exist, was revoked or has expired; the page doesn't say which. */
export function renderEnded(): string {
  return page(
    'This link has ended',
    '<h1>This link has ended</h1><p>It has expired, was revoked, or was copied incompletely. Ask for a new one.</p>',
  );
}

/** The page for a browser that asks too often. */
export function renderTooMany(seconds: number): string {
  return page(
    'Too many requests',
    `<h1>Too many requests</h1><p>Try again in ${counted(seconds, 'second')}.</p>`,
  );
}

function zoneTable(zone: string, records: readonly HandoverRecord[]): string {
  const rows = records.map(({ type, name, value, addresses, purpose, state, detail }) => {
    const instead =
      addresses.length === 0
        ? ''
        : `<small>Or, where a CNAME isn’t possible, address records: ${addresses.map((one) => `<code>${escaped(one)}</code>`).join(', ')}</small>`;
    return `<tr><td data-label="Type">${type}</td>
<td data-label="Name">${typedName(name)}<small>${escaped(purpose)}</small></td>
<td data-label="Value">${typedName(value)}${instead}</td>
<td data-label="State"><span class="state ${state}">${STATES[state]}</span>${detail === null ? '' : `<small>${escaped(shownHostsIn(detail))}</small>`}</td></tr>`;
  });
  const shown = escaped(shownHost(zone));
  const inDns = shown === zone ? '' : ` <span class="soft">(${escaped(zone)})</span>`;
  return `<h2>${shown}${inDns}</h2>
<table aria-label="Records of ${shown}"><thead><tr><th scope="col">Type</th><th scope="col">Name</th><th scope="col">Value</th><th scope="col">State</th></tr></thead>
<tbody>${rows.join('\n')}</tbody></table>`;
}

/** A name or value that someone types into DNS; before it, the same as people read it. */
function typedName(text: string): string {
  const shown = shownHost(text);
  const typed = `<code>${escaped(text)}</code>`;
  return shown === text ? typed : `${escaped(shown)}<small>In DNS: ${typed}</small>`;
}

function mailLine({ link: { recipients, mail, mail_at }, sendsMail }: HandoverView): string {
  const people = recipients.length === 1 ? 'one person' : `${recipients.length} people`;
  if (mail === 'none') return 'No mail is sent: no address was named.';
  if (mail === 'sent' && mail_at !== null) return `A mail was sent to ${people} on ${mail_at.toUTCString()}.`;
  if (mail === 'failed') return 'No mail was sent.';
  if (mail === 'unclear') return 'A mail may have been sent: its sending was cut short.';
  if (!sendsMail) return 'No mail is sent: this installation has no mail server.';
  return mail === 'waiting'
    ? `When all records are right, a mail is sent to ${people}.`
    : `A mail to ${people} is on its way.`;
}

const time = (date: Date) => `<time datetime="${date.toISOString()}">${date.toUTCString()}</time>`;

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow"><meta name="referrer" content="no-referrer">
<title>${escaped(title)}</title><style>${STYLE}</style></head>
<body><main>
${body}
</main></body></html>
`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ENTITIES[char] ?? char);
}
