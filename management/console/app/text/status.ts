import { words } from './format.ts';

/** How a state is coloured; each also has its word, so colour never carries a meaning alone. */
type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'idle';

const TONES: Readonly<Record<string, Tone>> = {
  active: 'good',
  verified: 'good',
  healthy: 'good',
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
  swapped: 'good',
  already: 'good',
  sent: 'good',
  changing: 'busy',
  stopping: 'busy',
  reverting: 'busy',
  stopped: 'warn',
  open: 'warn',
  unclear: 'warn',
  provisioning: 'busy',
  deprovisioning: 'busy',
  running: 'busy',
  queued: 'busy',
  pending: 'busy',
  pending_dns: 'warn',
  pending_certificate: 'busy',
  degraded: 'warn',
  suspended: 'warn',
  missing: 'warn',
  wrong: 'bad',
  drifted: 'warn',
  not_ready: 'warn',
  seven_days: 'warn',
  verification_failed: 'bad',
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
  deprovisioning: 'Being removed',
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
