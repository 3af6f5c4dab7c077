import { words } from './format.ts';

/** How a state is coloured; each also has its word, so colour never carries a meaning alone. */
type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'idle';

const TONES: Readonly<Record<string, Tone>> = {
  serving: 'good',
  first_visit_seen: 'good',
  no_visit_yet: 'busy',
  ready: 'good',
  passed: 'good',
  applied: 'good',
  live: 'good',
  ok: 'good',
  succeeded: 'good',
  proven: 'good',
  delivered: 'good',
  full: 'good',
  enabled: 'good',
  current: 'good',
  done: 'good',
  complete: 'good',
  waits_for_dns: 'warn',
  waits_for_proof: 'warn',
  ready_to_switch: 'warn',
  waits_for_certificate: 'busy',
  swapped: 'good',
  already: 'good',
  sent: 'good',
  changing: 'busy',
  stopping: 'busy',
  reverting: 'busy',
  stopped: 'warn',
  open: 'warn',
  unclear: 'warn',
  running: 'busy',
  queued: 'busy',
  pending: 'busy',
  pending_dns: 'warn',
  pending_certificate: 'busy',
  failing: 'bad',
  change_refused: 'warn',
  setting_up: 'busy',
  off: 'warn',
  missing: 'warn',
  wrong: 'bad',
  drifted: 'warn',
  not_ready: 'warn',
  seven_days: 'warn',
  failed: 'bad',
  conflict: 'bad',
  lost: 'bad',
  unreachable: 'bad',
  expired: 'bad',
  dead: 'bad',
  quota_near: 'warn',
  quota_reached: 'bad',
  warning: 'warn',
  error: 'bad',
};

const WORDS: Readonly<Record<string, string>> = {
  pending_dns: 'Waits for DNS',
  pending_certificate: 'Waits for certificate',
  not_ready: 'Not ready',
  seven_days: 'Seven days',
  ok: 'OK',
  infrastructure_checked: 'Infrastructure checked',
  dead: 'Given up',
  swapped: 'Changed',
  already: 'Had it already',
  open: 'To do',
  waits_for_dns: 'Waits for DNS',
};

export function toneOf(state: string): Tone {
  return TONES[state] ?? 'idle';
}

export function stateWords(state: string): string {
  return WORDS[state] ?? words(state);
}
