import type { ConformEnv } from '../env.ts';
import { googleBehaviours } from '../google/behaviours.ts';
import type { GoogleTarget } from '../google/target.ts';
import { NotTried, unreachable } from '../not-tried.ts';
import type { OpenTarget, Table } from '../table.ts';

const REAL = 'https://www.googletagmanager.com';
/** The stand-in knows every well-formed id. */
const MADE_UP = 'GTM-CONFORM';
const PROBE_MS = 30_000;

interface GoogleAddresses {
  /** `null`: the real ones. */
  readonly scripts: string | null;
  /** The address of one container's gateway; `null`: the real one, or none if `scripts` is not `null`. */
  readonly gateway: string | null;
}

/** Google's scripts and tag gateway. */
export function googleTable(addresses: GoogleAddresses, env: ConformEnv): Table<GoogleTarget> {
  return { name: 'Google', behaviours: googleBehaviours, open: () => openGoogle(addresses, env) };
}

async function openGoogle(
  { scripts, gateway }: GoogleAddresses,
  { CONFORM_WEB_TAG_ID: given }: ConformEnv,
): Promise<OpenTarget<GoogleTarget>> {
  const tagManager = parse(scripts ?? REAL);
  await fetch(new URL('/gtm.js', tagManager), { signal: AbortSignal.timeout(PROBE_MS) }).catch(
    (cause: unknown) => {
      throw new NotTried(unreachable(tagManager.host, cause), { cause });
    },
  );
  const containerId = given ?? (scripts === null ? null : MADE_UP);
  if (containerId === null) throw new NotTried('set CONFORM_WEB_TAG_ID (docs/conformance.md)');
  const real = (id: string) => new URL(`https://${id.toLowerCase()}.fps.goog`);
  const named = gateway === null ? null : parse(gateway);
  const gatewayOf = named !== null ? () => named : scripts === null ? real : null;
  return {
    target: { tagManager, containerId, ...(gatewayOf === null ? {} : { gateway: gatewayOf }) },
    subject: [containerId, tagManager.host, gatewayOf?.(containerId).host ?? 'no gateway'].join(', '),
    close: async () => ({ costs: [], remains: [] }),
  };
}

function parse(address: string): URL {
  const url = URL.parse(address);
  if (url === null) throw new NotTried(`${address} is not an address: give a URL like ${REAL}`);
  return url;
}
