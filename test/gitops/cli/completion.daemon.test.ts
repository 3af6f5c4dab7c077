import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CLI } from '../../support/cli/command.ts';
import { describeWith } from '../../support/components.ts';
import { creation, World } from '../../support/management/world.ts';

let folder: string;
let world: World;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tagyard-completion-'));
  world = await World.open({ logLevel: 'silent' });
  const body = creation(await world.client(), 'acme.example', { siteId: 'acme-shop' });
  await world.call('POST', '/server-containers', { as: 'owner', body });
  const [url, token] = [await world.listen(), await world.issuer.token('owner')];
  const tagyard = join(folder, 'tagyard');
  const settings = `MANAGEMENT_URL='${url}' TAGYARD_TOKEN='${token}'`;
  await writeFile(tagyard, `#!/bin/sh\n${settings} exec '${process.execPath}' '${CLI}' "$@"\n`);
  await chmod(tagyard, 0o755);
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { stdout } = await execa(tagyard, ['completion', shell]);
    await writeFile(join(folder, shell), `${stdout}\n`);
  }
});
afterAll(async () => {
  await world.close();
  await rm(folder, { recursive: true });
});

const run = async (shell: string, ...args: string[]) => {
  const env = { PATH: `${folder}:${process.env.PATH}`, HOME: folder, TERM: 'dumb' };
  return (await execa(shell, args, { env, extendEnv: false })).stdout;
};

/** What is typed, and a word that completes it. */
const TYPED = [
  ['tagyard sta', 'status'],
  ['tagyard keys ', 'rotate'],
  ['tagyard keys rotate a', 'age'],
  ['tagyard list --st', '--state'],
  ['tagyard suspend ac', 'acme-shop'],
] as const;

test.each(TYPED)('bash completes %j with %s', async (typed, word) => {
  const words = typed.split(' ').map((one) => `'${one}'`);
  const script = `source ${folder}/bash; COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; _tagyard; printf '%s\\n' "\${COMPREPLY[@]}"`;
  expect((await run('bash', '-c', script)).split('\n')).toContain(word);
});

describeWith('shells', 'other shells', () => {
  test.each(TYPED)('fish completes %j with %s', async (typed, word) => {
    const found = await run('fish', '-c', `source ${folder}/fish; complete -C '${typed}'`);
    expect(found.split('\n').map((line) => line.split('\t')[0])).toContain(word);
  });

  test.each(TYPED)('zsh completes %j with %s', async (typed, word) => {
    // What Tab makes of the line, in a terminal of zsh's own.
    const script = `
      zmodload zsh/zpty
      zpty shell 'zsh -f -i'
      zpty -w shell 'PS1=; source ${folder}/zsh; print loa""ded'
      zpty -r -m shell seen '*loaded*' || exit 1
      zpty -w -n shell '${typed}'$'\t'
      zpty -r -m shell seen '*${word}*' && print -r -- $seen`;
    expect(await run('zsh', '-f', '-c', script)).toContain(word);
  });
});
