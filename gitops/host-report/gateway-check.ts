import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { LookupFunction } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect, type TLSSocket } from 'node:tls';
import { ARRIVAL_PATH, CLAIMS, HOP_SECRET_HEADERS } from '../appliers/proxy/policy.ts';
import { checkPart } from '../report/check-part.ts';
import type { PartCheck } from '../report/report.ts';

/** An address for documentation (RFC 5737): no visitor has it. */
const CLAIMED_ADDRESS = '192.0.2.1';
/** The tag server itself answers it. */
const HEALTH_PATH = '/healthz';

interface GatewayCheckDeps {
  readonly lookup: LookupFunction;
  readonly port: number;
  readonly hopSecret: string;
  /** The certificate that gateways serve for the name, PEM; `null`: there is none yet. */
  readonly certificate: () => Promise<string | null>;
  readonly timeoutMs?: number;
}

/**
 * Checks a site's origin by its public name, as the edge reaches it: DNS, the front, a gateway that trusts requests
 * with the hop secret and no others, and a pod. Never throws.
 */
export async function checkGateway(origin: string, deps: GatewayCheckDeps): Promise<PartCheck> {
  const { hopSecret, timeoutMs } = deps;
  return await checkPart('gateway', {
    fix: 'unreached',
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    async ask(signal) {
      const visit = async (path: string, headers: Record<string, string>) =>
        await request(origin, { path, headers }, { ...deps, signal });
      const [hopHeader] = HOP_SECRET_HEADERS;
      const claim = { [CLAIMS.gateway.visitor]: CLAIMED_ADDRESS, 'x-forwarded-for': CLAIMED_ADDRESS };
      const trusted = await visit(ARRIVAL_PATH, { ...claim, [hopHeader]: hopSecret });
      if (trusted.body !== CLAIMED_ADDRESS) {
        throw new Error(
          `at ${origin}, the server that answers (status ${trusted.status}) doesn’t use the visitor’s address from the edge: it has another HOP_SECRET, or drops x-tagyard-* headers`,
        );
      }
      const untrusted = await visit(ARRIVAL_PATH, claim);
      if (untrusted.body === CLAIMED_ADDRESS) {
        throw new Error(`at ${origin}, any client can claim another address: the hop secret isn’t checked`);
      }
      const { status } = await visit(HEALTH_PATH, {});
      if (status !== 200)
        throw new Error(`at ${origin}, ${HEALTH_PATH} of a tag server has status ${status}`);
      return `a tag server answers at ${origin} through the gateways, and the hop secret is right`;
    },
  });
}

interface Visit {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

async function request(
  origin: string,
  { path, headers }: Visit,
  deps: GatewayCheckDeps & { readonly signal: AbortSignal },
): Promise<{ readonly status: number; readonly body: string }> {
  const { lookup, port, signal } = deps;
  const socket = connect({ host: origin, port, servername: origin, lookup, rejectUnauthorized: false });
  // Between the awaits below nothing else listens, and an error without a listener would end the process.
  socket.on('error', () => undefined);
  const abort = () => socket.destroy(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    await once(socket, 'secureConnect');
    await demandProven(origin, socket, deps);
    const host = port === 443 ? origin : `${origin}:${port}`;
    const sent = http.get({ path, headers: { ...headers, host }, createConnection: () => socket });
    const [response] = (await once(sent, 'response')) as [http.IncomingMessage];
    return { status: response.statusCode ?? 0, body: (await text(response)).trim() };
  } finally {
    signal.removeEventListener('abort', abort);
    socket.destroy();
  }
}

/** The hop secret is sent only to a server with the delivered certificate or one that the system trusts. */
async function demandProven(origin: string, socket: TLSSocket, deps: GatewayCheckDeps): Promise<void> {
  if (socket.authorized) return;
  const delivered = await deps.certificate();
  const { raw } = socket.getPeerCertificate();
  if (delivered !== null && new X509Certificate(delivered).raw.equals(raw)) return;
  throw new Error(
    `the server at ${origin} has a certificate that is neither the delivered one nor one that this machine trusts: ${socket.authorizationError}`,
  );
}
