import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { PATH_WITH_SBIN, undeclaredPrograms } from './support/components.ts';
import { takeStarted } from './support/declared-programs.ts';

describe('a program of a component that a test file doesn’t declare', () => {
  test.each([process.env.PATH, PATH_WITH_SBIN])(
    'refuses to start, and is recorded with the file',
    async (PATH) => {
      const { exitCode, stderr } = await execa('haproxy', ['-v'], { env: { PATH }, reject: false });
      // Taken, because this test would fail otherwise, as one must that starts such a program.
      expect([exitCode, takeStarted()]).toEqual([127, [stderr]]);
      expect(stderr).toMatch(/^test\/declared-programs.test.ts starts haproxy, and declares no component/);
    },
  );

  test('is known by the components that have it', () => {
    const all = undeclaredPrograms('');
    expect(all).toEqual(expect.arrayContaining(['nginx', 'docker', 'haproxy', 'iptables']));
    const some = undeclaredPrograms("describeWith(['knot', 'iptables'], 'a suite', body);");
    expect(all.filter((program) => !some.includes(program)).sort()).toEqual(
      ['ip6tables', 'ip6tables-restore', 'ip6tables-save', 'iptables', 'iptables-restore', 'iptables-save']
        .concat(['kdig', 'knotc', 'knotd', 'knsupdate'])
        .sort(),
    );
  });
});
