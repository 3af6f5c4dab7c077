import { type VerificationReport, type VerificationRequest, verificationReport } from './contract.ts';

/** Added to the request's own budget, for the network. */
const GRACE_MS = 500;

/** The verification worker can't be reached, or its answer is not a report. */
export class VerificationUnavailable extends Error {
  override name = 'VerificationUnavailable';
}

interface VerificationOptions {
  readonly url: string;
  readonly secret: string;
}

/** Client of the verification worker, for management and the command line. */
export class VerificationClient {
  readonly #options: VerificationOptions;

  constructor(options: VerificationOptions) {
    this.#options = options;
  }

  /** Throws `VerificationUnavailable`. */
  async verify(request: VerificationRequest, requestId: string): Promise<VerificationReport> {
    const { url, secret } = this.#options;
    let response: Response;
    try {
      response = await fetch(new URL('/verify', url), {
        method: 'POST',
        headers: { 'x-secret': secret, 'x-request-id': requestId, 'content-type': 'application/json' },
        body: JSON.stringify(request),
        redirect: 'error',
        signal: AbortSignal.timeout(request.budget + GRACE_MS),
      });
    } catch (cause) {
      throw new VerificationUnavailable('the verification worker doesn’t answer', { cause });
    }
    const answer: unknown = await response.json().catch(() => null);
    const report = verificationReport.safeParse(answer);
    if (response.ok && report.success) return report.data;
    throw new VerificationUnavailable(
      response.ok
        ? 'the verification worker’s answer is not a report; check that it runs the same release as this program'
        : `the verification worker answered ${response.status}`,
    );
  }
}
