import { SITE_STATES, type SiteState, type SiteStateName } from '../report/site-state.ts';
import type { CliContext } from './instance/provisioner-client.ts';
import { readRun } from './instance/run-file.ts';
import { QUICK_MS, timeoutMs } from './instance/timeout.ts';
import { CliError, UsageError } from './output/cli-error.ts';

/**
 * The states of the sites that management shows to this caller: it also knows their domains and verifications. Empty
 * without a token or an answer; then the hosts' own states are shown, and a check says what is wrong with management.
 */
export async function managementStates(context: CliContext): Promise<ReadonlyMap<string, SiteState>> {
  const access = await accessOf(context);
  if (access === null) return new Map();
  const { ManagementClient } = await import('./instance/management-client.ts');
  try {
    return await new ManagementClient(access.url, access.token, timeoutMs(context.env, QUICK_MS)).states();
  } catch (error) {
    if (error instanceof CliError) return new Map();
    throw error;
  }
}

/** The states of `--state`, by commas; `null`: it isn't given, so all states count. */
export function statesIn(list: string | undefined): SiteStateName[] | null {
  if (list === undefined) return null;
  return list.split(',').map((text) => {
    const found = SITE_STATES.find((name) => name === text.trim());
    if (found === undefined) throw new UsageError(`--state ${text}: give one of ${SITE_STATES.join(', ')}`);
    return found;
  });
}

/** The colour of a state's name on a terminal. */
export function stateColour(name: SiteStateName): 'green' | 'red' | 'yellow' {
  if (name === 'serving') return 'green';
  return BAD.includes(name) || name === 'waits_for_dns' ? 'red' : 'yellow';
}

/** Whether a site fails, or its newest manifest is refused. An older host says no state. */
export function isBad(state: SiteState | undefined): state is SiteState {
  return state !== undefined && [state.name, ...state.also].some((name) => BAD.includes(name));
}

const BAD: readonly SiteStateName[] = ['failing', 'change_refused'];

/** The API that the environment names, else that of this home's instance; `null`: neither is there. */
async function accessOf({ home, env }: CliContext): Promise<{ url: string; token: string } | null> {
  const { MANAGEMENT_URL: url, TAGYARD_TOKEN: token, INFRA_PROVISIONER_URL: provisioner } = env;
  if (url) return token ? { url, token } : null;
  // The provisioner that the environment names is that of another instance.
  const run = provisioner ? null : await readRun(`${home}/run.json`).catch(() => null);
  return run === null ? null : { url: run.management.url, token: run.demo.token };
}
