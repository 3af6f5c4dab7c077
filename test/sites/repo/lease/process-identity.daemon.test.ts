import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { hasEnded, ownIdentity } from '../../../../sites/repo/lease/process-identity.ts';
import { describeWith, testWith } from '../../../support/components.ts';

const MODULE = new URL('../../../../sites/repo/lease/process-identity.ts', import.meta.url).href;
/** An id above the greatest that Linux gives to a process (2^22). */
const NO_PROCESS = 2 ** 23;

test('this process has not ended, and one with an unused id has', () => {
  const own = ownIdentity();
  expect(hasEnded(own)).toBe(false);
  expect(hasEnded({ ...own, pid: NO_PROCESS })).toBe(true);
});

test('a process has ended if another one has its id now', () => {
  expect(hasEnded({ ...ownIdentity(), started: '1' })).toBe(true);
});

testWith(
  'mount',
  'without a machine id, as in most containers, an ended process is recognised too',
  async () => {
    const script = `
    const { hasEnded, ownIdentity } = await import('${MODULE}');
    const own = ownIdentity();
    console.log(JSON.stringify([own.machine, hasEnded(own), hasEnded({ ...own, pid: ${NO_PROCESS} })]));`;
    const hidden = 'test ! -e /etc/machine-id || mount --bind /dev/null /etc/machine-id; exec "$0" "$@"';
    const node = [process.execPath, '--input-type=module', '--eval', script];
    const answer = execFileSync('unshare', ['--mount', 'sh', '-c', hidden, ...node], { encoding: 'utf8' });
    expect(JSON.parse(answer)).toEqual([null, false, true]);
  },
);

describeWith('mount', 'where /proc hides the processes of other users', () => {
  test.each([1, 2])('hidepid=%d: a process of another user has not ended as long as it runs', (mode) => {
    const own = ownIdentity();
    const script = `
      const { hasEnded } = await import('${MODULE}');
      process.setgroups([]);
      process.setgid(65534);
      process.setuid(65534);
      const own = ${JSON.stringify(own)};
      const others = [{ ...own, uid: null }, { ...own, pid: ${NO_PROCESS} }, { ...own, uid: 65534 }];
      console.log(JSON.stringify([own, ...others].map(hasEnded)));`;
    const mounted = `mount -t proc -o hidepid=${mode} proc /proc && exec "$0" "$@"`;
    const node = [process.execPath, '--input-type=module', '--eval', script];
    const answer = execFileSync('unshare', ['--mount', 'sh', '-c', mounted, ...node], { encoding: 'utf8' });
    expect(JSON.parse(answer)).toEqual([false, false, true, true]);
  });
});
