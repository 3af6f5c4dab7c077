import { shownHost } from '../../base/host-name.ts';
import type { HandoverRecord } from './records.ts';

/**
 * The mail contains no link, because a link's secret isn't kept, and no text that a user has chosen: it must not be a
 * way to send messages to others.
 */
export function handoverMail(records: readonly HandoverRecord[]) {
  const lines = records.map(
    ({ type, name, value }) => `  ${inBothForms(name)}  ${type}  ${inBothForms(value)}`,
  );
  return {
    subject: 'Your DNS records are set',
    text: [
      'The resolvers have found all DNS records that you were asked to set.',
      ...(lines.length === 0 ? [] : ['', ...lines]),
      '',
      'Nothing more needs to be done. The records must stay.',
      '',
    ].join('\n'),
  };
}

/** A name as people read it, with the one that DNS has if that differs. */
function inBothForms(name: string): string {
  const shown = shownHost(name);
  return shown === name ? name : `${shown} (${name})`;
}
