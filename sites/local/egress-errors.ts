const STATUSES: Readonly<Record<string, number>> = {
  ECONNREFUSED: 521,
  ETIMEDOUT: 522,
  EHOSTUNREACH: 523,
  ENETUNREACH: 523,
  ENOTFOUND: 530,
  EAI_AGAIN: 530,
};
/** Codes of Node and OpenSSL for a certificate that isn't valid for the host. */
const CERTIFICATE = /CERT|^UNABLE_TO_|^INVALID_(?:CA|PURPOSE)$|^HOSTNAME_MISMATCH$/;
const HANDSHAKE = /SSL|TLS|^EPROTO$/;

/** The status with which Cloudflare answers where it gets no answer from an origin (docs/facts.md, Cloudflare Workers). */
export function statusOfFailure({ code = '' }: NodeJS.ErrnoException): number {
  if (CERTIFICATE.test(code)) return 526;
  return STATUSES[code] ?? (HANDSHAKE.test(code) ? 525 : 520);
}
