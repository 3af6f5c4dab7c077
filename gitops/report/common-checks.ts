import { listenableAt } from '../../base/held-port.ts';
import { askRights, type RemoteRepo } from '../../sites/repo/rights.ts';
import { checkPart, NotChecked, textOfError } from './check-part.ts';
import type { PartCheck } from './report.ts';

/** Checks that the host and management make alike. None throws. */

/** Seconds. The edge accepts a mark for two minutes, a name server a signature for five. */
const MOST_DIFFERENCE = 60;
/** A connection over SSH takes longer than other checks. */
const GIT_MS = 8_000;

/** Compares the clock with that of the service at a URL. A service that doesn't answer is no fault of the clock. */
export async function checkClock(url: string, now: () => number = Date.now): Promise<PartCheck> {
  const { host } = new URL(url);
  return await checkPart('clock', {
    fix: 'wrong',
    async ask(signal, fault) {
      const response = await fetch(url, { method: 'HEAD', redirect: 'manual', signal }).catch((error) => {
        throw new NotChecked(`${host} doesn’t answer: ${textOfError(error)}`);
      });
      const theirs = Date.parse(response.headers.get('date') ?? '');
      if (Number.isNaN(theirs)) throw new NotChecked(`${host} says no time`);
      const seconds = Math.round((now() - theirs) / 1000);
      const how = `the clock of this machine is ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead of'} that of ${host}`;
      if (Math.abs(seconds) > MOST_DIFFERENCE) throw fault(how, 'wrong');
      return how;
    },
    explain: (error) => ({ status: 'skipped', detail: `${host}: ${textOfError(error)}`, fix: null }),
  });
}

/** Asks the sites repository whether this process may read and push. */
export async function checkRights(repo: RemoteRepo): Promise<PartCheck> {
  return await checkPart('sites_repo_rights', {
    fix: 'refused',
    timeoutMs: GIT_MS,
    async ask(_signal, fault) {
      const branches = await askRights(repo).catch((error: unknown) => {
        throw fault(`SITES_REPO: ${textOfError(error)}`, 'refused');
      });
      if (branches.length > 0 && !branches.includes(repo.branch)) {
        throw fault(`SITES_BRANCH: the repository has no branch ${repo.branch}`, 'branch');
      }
      return branches.length === 0
        ? 'the repository is empty, and may be pushed to'
        : 'it may be read and pushed to';
    },
  });
}

/**
 * Whether the daemons of this machine can listen on their ports. `isOurs`: the daemons run, so what they hold is no
 * fault.
 */
export async function checkPorts(
  ports: readonly {
    readonly setting: string;
    readonly host: string;
    readonly port: number;
    readonly isOurs: boolean;
  }[],
): Promise<PartCheck> {
  return await checkPart('ports', {
    fix: 'taken',
    async ask(_signal, fault) {
      const asked = ports.filter(({ isOurs, port }) => !isOurs && port !== 0);
      const answers = await Promise.all(
        asked.map(async (one) => ({ ...one, problem: await listenableAt(one) })),
      );
      const taken = answers.flatMap(({ problem }) => (problem?.kind === 'taken' ? problem.message : []));
      if (taken.length > 0) throw fault(taken.join('; '), 'taken');
      const denied = answers.flatMap(({ problem }) => (problem?.kind === 'denied' ? problem.message : []));
      if (denied.length > 0) throw new NotChecked(denied.join('; '));
      const listed = ports.map(
        ({ setting, port, isOurs }) => `${setting} ${port}${isOurs ? ' (in use by this installation)' : ''}`,
      );
      return listed.join(', ');
    },
  });
}
