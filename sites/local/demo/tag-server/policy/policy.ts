import type { RequestOptions } from 'node:https';
import { createContext, runInContext, Script } from 'node:vm';
import { loadHttps } from '../node/modules.ts';

/** Milliseconds that a script may run; also the limit for all its functions in one decision. */
const LIMIT_MS = 1_000;

/** What templates may do. */
export interface TagPolicy {
  /** Why a template may not use a permission; `null`: it may. Never throws. */
  refusal(permission: string, data: Readonly<Record<string, unknown>>): string | null;
}

/** Without a script, templates may do what their own permissions allow. */
export const NO_POLICY: TagPolicy = { refusal: () => null };

/** The script can't be fetched or run. */
class PolicyUnavailable extends Error {
  override name = 'PolicyUnavailable';
}

/**
 * Runs a policy script in gtag.js syntax: `gtag('policy', <permission or 'all'>, function(container, permission,
 * data))`. A function that is registered for a permission, or for all, refuses it if it returns false or throws.
 * Source: https://developers.google.com/tag-platform/tag-manager/server-side/configure-a-policy
 */
export function runPolicy(text: string, container: string): TagPolicy {
  const context = createContext({ __proto__: null }, { codeGeneration: { strings: false, wasm: false } });
  const limits = { timeout: LIMIT_MS };
  try {
    runInContext(REGISTER, context, limits);
    new Script(text, { filename: 'policy.js' }).runInContext(context, limits);
  } catch (cause) {
    throw new PolicyUnavailable(`The policy script can't be run: ${messageOf(cause)}`, { cause });
  }
  return {
    refusal(permission, data) {
      const given = JSON.stringify([container, permission, data]);
      try {
        const answer: unknown = runInContext(`${DECIDE}(${given})`, context, limits);
        return answer === true ? null : 'the policy rejected it';
      } catch (error) {
        return `the policy rejected it: ${messageOf(error)}`;
      }
    },
  };
}

/** The name of the function that calls the script's functions for a permission. */
const DECIDE = '__tagyard_decide';
const REGISTER = `
  const ${DECIDE} = (() => {
    const rules = [];
    globalThis.dataLayer = [];
    globalThis.gtag = function (command, permission, rule) {
      if (command === 'policy' && typeof rule === 'function') rules.push({ permission, rule });
    };
    return ([container, permission, data]) =>
      rules
        .filter((one) => one.permission === 'all' || one.permission === permission)
        .every(({ rule }) => rule(container, permission, data) !== false);
  })();
`;

/** Fetches and runs the script. Like the fetch of the container, this one has no time limit. */
export async function fetchPolicy(
  url: string,
  container: string,
  { lookup }: Required<Pick<RequestOptions, 'lookup'>>,
): Promise<TagPolicy> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  loadHttps()
    .request(url, { lookup }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const { statusCode = 0 } = response;
        if (statusCode !== 200) reject(new Error(`it was answered with ${statusCode}`));
        else resolve(Buffer.concat(chunks).toString());
      });
    })
    .on('error', reject)
    .end();
  const text = await promise.catch((cause: unknown) => {
    throw new PolicyUnavailable(`The policy script ${url} can't be fetched: ${messageOf(cause)}`, { cause });
  });
  return runPolicy(text, container);
}

/** Works also for errors that a script throws: they are of another realm, so `instanceof Error` is false for them. */
function messageOf(error: unknown): string {
  const hasMessage = typeof error === 'object' && error !== null && 'message' in error;
  return String(hasMessage ? error.message : error);
}
