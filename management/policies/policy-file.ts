import { policyProblem } from '../../sites/manifest/policy/policy-script.ts';
import { SitesRepoError } from '../../sites/repo/errors.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { ManagementProblem, repoProblem } from '../http/errors.ts';
import { demandTag, shortDigest } from '../view/etag.ts';
import { planOf } from '../view/plan.ts';

const HISTORY = 20;

/** Whose script a request is about. */
export interface PolicyOwner {
  /** The path of its file in the sites repository. */
  readonly file: string;
  /** The client, as named in commits and their trailers; `null`: it is the instance's script. */
  readonly client: string | null;
}

interface PolicyChange {
  readonly caller: Actor;
  readonly requestId: string;
  readonly ifMatch: string | undefined;
  /** `null`: it is deleted. */
  readonly script: string | null;
}

type Parts = Pick<Context, 'repo' | 'provisioner' | 'log'>;

/** The policy script as git has it. Throws `unknown_policy`. */
export async function readPolicy({ repo }: Parts, { file }: PolicyOwner) {
  return await fromGit(async () => {
    const head = await repo.head();
    const found = head === null ? null : await repo.readSite(head, file);
    if (found === null || head === null) throw new ManagementProblem('unknown_policy');
    const history = await repo.history(file, HISTORY, head);
    return {
      script: found.text,
      history: history.map(({ revision, author, at, trailers }) => {
        return { commit: revision, author, at, reason: trailers.Reason ?? null };
      }),
    };
  });
}

/** What the change would do. Throws the same problems as `changePolicy`. */
export async function planPolicy({ repo }: Parts, { file }: PolicyOwner, change: PolicyChange) {
  demandParsed(change.script);
  const current = await fromGit(async () => {
    const head = await repo.head();
    return head === null ? null : ((await repo.readSite(head, file))?.text ?? null);
  });
  judge(current, change);
  const shown = (script: string | null) => (script === null ? null : { script });
  return { plan: planOf(shown(current), shown(change.script)) };
}

/** Writes or deletes the script by a commit in the caller's name, and has the provisioner apply it. */
export async function changePolicy(parts: Parts, owner: PolicyOwner, change: PolicyChange): Promise<void> {
  const { repo, provisioner, log } = parts;
  const { caller, requestId, script } = change;
  const { file, client } = owner;
  demandParsed(script);
  await fromGit(() =>
    repo.commit({
      site: file,
      subject: `${script === null ? 'Delete' : 'Set'} the policy script of ${client === null ? 'the instance' : `client ${client}`}`,
      author: { name: caller.name, email: caller.email },
      trailers: {
        ...(client === null ? {} : { Client: client }),
        Actor: caller.subject,
        'Request-Id': requestId,
        Reason: 'asked for through the API',
      },
      edit: (current) => {
        judge(current, change);
        return script;
      },
    }),
  );
  provisioner
    .sync({ requestId })
    .catch((err: unknown) => log.warn({ err }, 'the provisioner will get the policy at its next poll'));
}

/** Throws `unknown_policy` if there is no script to delete, or `precondition_failed`. */
function judge(current: string | null, { script, ifMatch }: PolicyChange): void {
  if (current === null && script === null) throw new ManagementProblem('unknown_policy');
  demandTag(ifMatch, (tag) => current !== null && tag === policyTag(current));
}

/** A strong validator of a script. */
export function policyTag(script: string): string {
  return `"${shortDigest(script)}"`;
}

function demandParsed(script: string | null): void {
  const problem = script === null ? null : policyProblem(script);
  if (problem === null) return;
  const message = problem.line === null ? problem.message : `line ${problem.line}: ${problem.message}`;
  throw new ManagementProblem('invalid_policy', {
    detail: message,
    errors: [{ path: 'script', message }],
  });
}

/** Throws `sites_repo_unavailable`. */
async function fromGit<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof SitesRepoError)) throw cause;
    throw repoProblem(cause);
  }
}
