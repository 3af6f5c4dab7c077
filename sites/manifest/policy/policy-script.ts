import { Script } from 'node:vm';
import { contentHash } from '../../../base/ownership.ts';

/** The largest policy script of a client or the instance, in bytes. */
export const LARGEST_POLICY = 32 * 1024;

/** The script that limits what the templates of a site's tag server may do (docs/containers.md). */
export interface PolicyScript {
  readonly text: string;
  readonly hash: string;
}

interface PolicyProblem {
  readonly message: string;
  /** From 1; `null`: the problem is not in one line. */
  readonly line: number | null;
}

/** Why a script can't be used; `null`: it can. It is only parsed, never run. */
export function policyProblem(text: string): PolicyProblem | null {
  const size = Buffer.byteLength(text);
  if (size > LARGEST_POLICY) return { message: `is larger than ${LARGEST_POLICY / 1024} KiB`, line: null };
  const hidden = text.split(/\r?\n/).findIndex((line) => /[^\t\P{Cc}]|\p{Cs}/u.test(line));
  if (hidden >= 0) return { message: 'must not contain control characters or surrogates', line: hidden + 1 };
  // Inside the function that `joinPolicies` puts around each script, `#!` is a syntax error.
  if (text.startsWith('#!')) return { message: 'must not begin with #!', line: 1 };
  try {
    new Script(text, { filename: 'policy.js' });
    return null;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const line = /^policy\.js:(\d+)$/m.exec(error.stack ?? '')?.[1];
    return { message: error.message, line: line === undefined ? null : Number(line) };
  }
}

/** Joins the instance's script and the client's, each in its own function, so names don't collide. `null`: none. */
export function joinPolicies(scripts: readonly (string | undefined)[]): PolicyScript | null {
  const given = scripts.flatMap((script) => (script === undefined ? [] : [script.replaceAll('\r\n', '\n')]));
  if (given.length === 0) return null;
  const text = given.map((script) => `(function () {\n${script}\n})();\n`).join('');
  return { text, hash: contentHash(text).slice(0, 16) };
}
