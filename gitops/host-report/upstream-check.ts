import { isIP, type LookupFunction } from 'node:net';
import type { EdgeUpstream } from '../appliers/proxy/backend.ts';
import { checkPart, skippedPart } from '../report/check-part.ts';
import type { PartCheck } from '../report/report.ts';
import { RUNBOOKS } from '../report/runbooks.ts';
import { EDGE_PATH, type EdgeVisit, isOfWorker, visitEdge } from './edge-visit.ts';

interface UpstreamVisit {
  readonly upstream: EdgeUpstream;
  /** An edge hostname. */
  readonly name: string;
  /** A site has the name, so only the worker may answer. */
  readonly isSite: boolean;
  readonly hopSecret: string;
  readonly previousHopSecret?: string | undefined;
}

/**
 * Visits the edge as the proxy does, and compares HOP_SECRET by whether the edge recognises the visit's signature: no
 * secret is sent. Never throws.
 */
export async function checkUpstream({
  upstream,
  name,
  isSite,
  hopSecret,
  previousHopSecret,
}: UpstreamVisit): Promise<PartCheck[]> {
  const { scheme, address, port } = upstream;
  const url = new URL(`${scheme}://${name}:${port}`);
  const visit: { answer?: EdgeVisit; hasPrevious?: boolean } = {};
  const answers = await checkPart('edge_upstream', {
    fix: 'silent',
    subject: `EDGE_UPSTREAM ${scheme}://${address}:${port}`,
    async ask(signal) {
      const found = `answers at ${address}:${port}`;
      try {
        const by = (secret: string) =>
          visitEdge(url, EDGE_PATH, { lookup: fixed(address), hopSecret: secret, signal });
        visit.answer = await by(hopSecret);
        if (!visit.answer.isRecognised && previousHopSecret !== undefined) {
          visit.hasPrevious = (await by(previousHopSecret)).isRecognised;
        }
      } catch (error) {
        // Without a site nothing has a certificate for the name, and a refusal is an answer.
        if (isSite || !isOfTls(error)) throw error;
        return `a server ${found}`;
      }
      if (isOfWorker(visit.answer)) return `the worker ${found}`;
      if (!isSite) return `a server ${found}`;
      throw new Error(`it answers with status ${visit.answer.status}, but it is not the worker`);
    },
  });
  return [answers, comparedSecret(visit.answer, visit.hasPrevious)];
}

function comparedSecret(answer: EdgeVisit | undefined, hasPrevious = false): PartCheck {
  const name = 'hop_secret';
  if (answer?.isRecognised) {
    return { name, status: 'passed', detail: 'the edge has the same HOP_SECRET', fix: null };
  }
  if (hasPrevious) {
    const detail = 'the edge still has HOP_SECRET_PREVIOUS as its HOP_SECRET: a rotation is under way';
    return { name, status: 'passed', detail, fix: null };
  }
  if (answer === undefined || !isOfWorker(answer)) {
    return skippedPart(name, 'the worker didn’t answer, so HOP_SECRET was not compared');
  }
  const detail =
    'HOP_SECRET: the edge doesn’t recognise what this host signs: it has another secret, another time, or is older than this release';
  return { name, status: 'failed', detail, fix: RUNBOOKS.hop_secret.fixes.other };
}

/** Node's errors of TLS: the handshake's (`ERR_SSL_…`), and those of the certificate. */
function isOfTls(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /^(?:ERR_SSL|ERR_TLS|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code);
}

/** Leads every name to one address. */
function fixed(address: string): LookupFunction {
  const family = isIP(address);
  return (_name, { all }, done) => (all ? done(null, [{ address, family }]) : done(null, address, family));
}
