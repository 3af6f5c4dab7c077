import { hash, randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Manifest } from '../../sites/manifest/schema.ts';
import type { Database } from '../db/database.ts';
import { withoutSecrets } from '../db/manifest-view.ts';
import { ManagementProblem } from '../http/errors.ts';
import { holdPorts, leasePorts, type PortPair } from '../ports/ports.repository.ts';
import { installationMac } from '../records/installation-key.ts';
import { isDryRun } from '../view/plan.ts';
import type { Draw } from './names/draw.ts';

/** What a plan is made of, besides its request. */
interface Planned {
  /** What the plan is based on. */
  readonly before: unknown;
  readonly after: Manifest | null;
  /** Domains that move away from other clients. */
  readonly moved: readonly string[];
  /** The ports that the plan leases. */
  readonly leased?: PortPair;
}

/**
 * How a request’s values are generated, and whether what it would save is what was planned. The values of a dry run, and
 * of a request that names a plan, are derived from the installation's key: they are the same each time, and nobody can
 * predict them. The values of any other request are random.
 */
export interface Planning {
  /** Makes the plan again where the request names one, before it takes anything. Throws `plan_changed`. */
  compare(plan: () => Promise<unknown>): Promise<void>;
  /** Generates values. `of` is what they must differ by, such as the version of what is changed. */
  draw(of: string): Draw;
  /** Leases the ports that the named plan has, otherwise the lowest free ones. `null`: none is free. */
  lease(db: Database, host: string, container: string): Promise<PortPair | null>;
  /** The plan's checksum. Throws `plan_changed` if the request names another one. */
  seal(planned: Planned): string;
}

/** The header that names the plan to save. */
const HEADER = 'x-tagyard-plan';
/** Another site has what was planned. */
const TAKEN: readonly string[] = ['domain_in_use', 'no_free_port'];
const PORTS = /\.(\d{1,5})\.(\d{1,5})$/;

/** The planning of a change that is no request, or of one that neither is a dry run nor names a plan. */
export const UNPLANNED: Planning = {
  compare: async () => undefined,
  draw: () => (bytes) => randomBytes(bytes),
  lease: leasePorts,
  seal: () => '',
};

export async function planningOf(db: Database, request: FastifyRequest): Promise<Planning> {
  const { [HEADER]: given } = request.headers;
  const isDry = isDryRun(request.query);
  if (given === undefined && !isDry) return UNPLANNED;
  const mac = await installationMac(db);
  const { dryRun: _, ...query } = Object(request.query);
  const [path] = request.url.split('?');
  const what = [request.method, path, query, request.body ?? null];
  // A dry run makes a new plan, whatever plan it names.
  const bound = isDry ? null : String(given);
  const [, processing, preview] = bound?.match(PORTS) ?? [];
  const ports = preview === undefined ? null : { processing: Number(processing), preview: Number(preview) };
  return {
    compare: async (plan) => {
      if (bound === null) return;
      try {
        await plan();
      } catch (error) {
        if (!(error instanceof ManagementProblem) || !TAKEN.includes(error.code)) throw error;
        throw new ManagementProblem('plan_changed', { detail: error.message, cause: error });
      }
    },
    draw: (of) => {
      let count = 0;
      return (bytes) => {
        count += 1;
        return mac('planned value', [what, of, count]).digest().subarray(0, bytes);
      };
    },
    lease: async (trx, host, container) => {
      if (ports === null) return await leasePorts(trx, host, container);
      if (!(await holdPorts(trx, host, container, ports))) throw changed();
      return ports;
    },
    seal: ({ after, leased, ...rest }) => {
      const planned = { ...rest, after: after && withoutSecrets(after) };
      const checksum = `${mac('plan', [what, planned]).digest('hex')}${leased ? `.${leased.processing}.${leased.preview}` : ''}`;
      if (bound !== null && bound !== checksum) throw changed();
      return checksum;
    },
  };
}

function changed(): ManagementProblem {
  return new ManagementProblem('plan_changed', {
    detail: 'the request would not save the plan that its header names; make a dry run again and review it',
  });
}

/** The version of a site's file, as plans name it. */
export function fileVersion(text: string | null): string | null {
  return text === null ? null : hash('sha256', text);
}
