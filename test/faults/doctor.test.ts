import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type Instance, startInstance, temporaryHome } from '../support/instance.ts';
import { runtimesOf } from '../support/runtimes.ts';
import { signal } from '../support/signal.ts';

/** `tagyard doctor` with a part of a real instance frozen: it accepts connections and answers nothing. */
const home = temporaryHome();
let instance: Instance;
beforeAll(async () => {
  instance = await startInstance(home.path, { TAGYARD_PROXY: 'embedded', TAGYARD_CONTAINERS: 'process' });
});
afterAll(async () => {
  await instance?.stop();
  home[Symbol.dispose]();
});

async function doctor(env: NodeJS.ProcessEnv = {}): Promise<{ exitCode: number | undefined; text: string }> {
  const { exitCode, stdout, stderr } = await execa(process.execPath, ['gitops/cli.ts', 'doctor'], {
    reject: false,
    env: { TAGYARD_HOME: home.path, ...env },
  });
  return { exitCode, text: stripVTControlCharacters(`${stdout}\n${stderr}`) };
}

const children = (): { pid: number; script: string }[] =>
  JSON.parse(readFileSync(join(home.path, 'children.json'), 'utf8'));
const pidOf = (script: string) =>
  children().flatMap(({ pid, script: own }) => (own.endsWith(script) ? [pid] : []));
/** The processing servers of the demo, by the titles that they were started with. */
function containers(): number[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      const isOurs = readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('demo-shop-processing');
      return isOurs && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(home.path) ? [Number(pid)] : [];
    } catch {
      return [];
    }
  });
}

test.each([
  [
    'management',
    () => pidOf('management/main.ts'),
    /^failed +management .*did not answer/m,
    { TAGYARD_TIMEOUT: '3' },
  ],
  ['container', containers, /demo-shop/m, {}],
  ['edge', () => pidOf('cloudflare/main.ts').flatMap(runtimesOf), /^failed +edge .*no answer/m, {}],
])('tagyard doctor names a frozen part, and finds no problem before: %s', async (_name, pids, words, env) => {
  await eventually(async () => expect(await doctor()).toMatchObject({ exitCode: 0 }), { timeoutMs: 60_000 });
  const frozen = pids();
  expect(frozen).not.toEqual([]);
  for (const pid of frozen) signal(pid, 'SIGSTOP', home.path);
  try {
    const { exitCode, text } = await doctor(env);
    expect(text).toMatch(words);
    expect(text).not.toMatch(/1 of 1 site is well/);
    expect(exitCode).toBe(1);
  } finally {
    for (const pid of frozen) signal(pid, 'SIGCONT', home.path);
  }
});
