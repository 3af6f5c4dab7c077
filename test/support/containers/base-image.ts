import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { PATH_WITH_SBIN } from '../components.ts';
import { temporaryFolder } from '../package/folder.ts';

const PROGRAMS = ['/bin/sh', 'git', 'nginx'];

/**
 * An image of this machine's own Node, git, nginx and shell, in place of the published base, which only a registry
 * has. Disposing removes it.
 */
export async function baseImage(tag: string): Promise<AsyncDisposable> {
  using folder = temporaryFolder();
  const root = join(folder.path, 'root');
  const place = (source: string, path = source) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    cpSync(source, join(root, path), { recursive: true, dereference: true });
  };
  for (const path of ['/tmp', '/usr/bin', '/usr/local/bin']) mkdirSync(join(root, path), { recursive: true });
  chmodSync(join(root, 'tmp'), 0o1777);
  symlinkSync('usr/bin', join(root, 'bin'));
  const env = { ...process.env, PATH: PATH_WITH_SBIN };
  const programs = PROGRAMS.map((name) =>
    execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8', env }).trim(),
  );
  const [shell = '', git = '', nginx = ''] = programs;
  const core = execFileSync('git', ['--exec-path'], { encoding: 'utf8' }).trim();
  place(shell, '/usr/bin/sh');
  place(git, '/usr/bin/git');
  place(nginx, '/usr/sbin/nginx');
  place(process.execPath, '/usr/local/bin/node');
  // The built-in commands are all the same program.
  mkdirSync(join(root, core), { recursive: true });
  symlinkSync('/usr/bin/git', join(root, core, 'git'));
  for (const library of new Set([...programs, process.execPath].flatMap(librariesOf))) place(library);
  const certificates = '/etc/ssl/certs/ca-certificates.crt';
  place(certificates);
  const archive = join(folder.path, 'root.tar');
  await execa('tar', ['--create', '--owner=0', '--group=0', '--file', archive, '--directory', root, '.']);
  rmSync(root, { recursive: true });
  const path = 'ENV PATH=/usr/local/bin:/usr/bin:/bin';
  await execa('docker', ['import', '--change', path, archive, tag]);
  return {
    async [Symbol.asyncDispose]() {
      await execa('docker', ['image', 'rm', '--force', tag]);
    },
  };
}

/** The shared libraries of a program and its dynamic loader, as `ldd` finds them. */
function librariesOf(program: string): string[] {
  const lines = execFileSync('ldd', [program], { encoding: 'utf8' }).split('\n');
  return lines.flatMap((line) => /(\/\S+) \(0x/.exec(line)?.[1] ?? []);
}
