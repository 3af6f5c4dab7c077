import type { PartCheck } from '../../report/report.ts';
import { CliError } from '../output/cli-error.ts';
import { callService } from './call.ts';
import { fetchJson } from './fetch-whole.ts';

/** A service that `tagyard doctor` asks directly, not through the provisioner. */
interface Part {
  readonly name: string;
  /** The environment variable that has its address. */
  readonly variable: string;
  readonly url: string | undefined;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** What is wrong with an answer of the service itself; `null`: nothing. */
  faultOf(answer: Answer): string | null;
}

interface Answer {
  readonly status: number;
  /** The code of a problem; empty if the answer isn't one. */
  readonly code: string;
  readonly body: object;
}

export function managementService(url: string | undefined): Part {
  return {
    name: 'management',
    variable: 'MANAGEMENT_URL',
    url,
    path: '/readyz',
    faultOf({ status, body }) {
      const { findings } = body as { findings?: unknown }; // an older management has none
      if (status === 200) {
        if (!Array.isArray(findings) || findings.length === 0) return null;
        return `its settings need a fix (${findings.join(', ')}): its log and tagyard check, run with its settings, say which`;
      }
      const faulty = Object.entries(body).flatMap(([name, ok]) => (ok === false ? [name] : []));
      return `it is not ready: ${faulty.join(', ') || `status ${status}`}`;
    },
  };
}

/**
 * The verification worker. It checks the secret before the method, so `method_not_allowed` for this `GET` means that it
 * accepted the secret. If doctor has no secret, it sends none and expects `wrong_secret`.
 */
export function verificationService(url: string | undefined, secret: string): Part {
  const expected = secret === '' ? 'wrong_secret' : 'method_not_allowed';
  return {
    name: 'verification',
    variable: 'VERIFICATION_WORKER_URL',
    url,
    path: '/verify',
    ...(secret === '' ? {} : { headers: { 'x-secret': secret } }),
    faultOf({ code }) {
      if (code === expected) return null;
      if (code === 'wrong_secret') return 'VERIFICATION_SECRET is not the secret of this worker';
      return `it refuses requests: ${code}`;
    },
  };
}

/** Asks one part within a time limit. Only an answer of the service itself passes. Never throws `CliError`. */
export async function askPart(part: Part, limitMs: number): Promise<PartCheck> {
  const { name, variable, url, path, headers = {} } = part;
  if (url === undefined) {
    return { name, status: 'skipped', detail: `set ${variable} to check it`, fix: null };
  }
  if (!URL.canParse(path, url)) return failedPart(name, `${url} is not a URL`);
  try {
    const address = new URL(path, url);
    const call = { method: 'GET', path: address.pathname, timeoutMs: limitMs };
    const response = await callService({ name, url }, call, (signal) =>
      fetchJson(address, { headers, redirect: 'manual', signal }),
    );
    const answer = answerOf(name, response.status, response.json);
    if (answer === null) {
      const detail = `${url} answers with status ${response.status}, but it is not ${name}: check ${variable}`;
      return failedPart(name, detail);
    }
    const fault = part.faultOf(answer);
    return fault === null
      ? { name, status: 'passed', detail: `it answers at ${url}`, fix: null }
      : failedPart(name, `${url}: ${fault}`);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return failedPart(name, error.message);
  }
}

/** `null`: another service answered. */
function answerOf(service: string, status: number, body: unknown): Answer | null {
  if (typeof body !== 'object' || body === null) return null;
  if (!('service' in body) || body.service !== service) return null;
  const code = 'code' in body ? body.code : '';
  return typeof code === 'string' ? { status, code, body } : null;
}

export function failedPart(name: string, detail: string): PartCheck {
  return { name, status: 'failed', detail, fix: 'Check its process and its log; restart it if it hangs.' };
}
