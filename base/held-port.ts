import { once } from 'node:events';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';

/**
 * Takes a TCP port for a server that starts later, and closes each connection until then. Returns how to free it, which
 * resolves to the port. Throws as `listenError` says; `setting` names the port.
 */
export async function holdPort(host: string, port: number, setting: string): Promise<() => Promise<number>> {
  const server = createServer((socket) => socket.destroy()).listen({ host, port });
  await once(server, 'listening').catch(async (error: Error) => {
    throw await listenError(error, setting);
  });
  const address = server.address() as AddressInfo; // a TCP server that listens has such an address
  return async () => {
    server.close();
    await once(server, 'close');
    return address.port;
  };
}

/** Starts a server, and returns its URL. Throws as `listenError` says; `setting` names its port. */
export async function listenAt(
  app: { listen(at: { host: string; port: number }): Promise<string> },
  at: { readonly host: string; readonly port: number },
  setting: string,
): Promise<string> {
  return await app.listen(at).catch(async (error: Error) => {
    throw await listenError(error, setting);
  });
}

/** Whether a server of this process could listen there now; `null`: it could. `denied`: another user may be able to. */
export async function listenableAt({
  host,
  port,
  setting,
}: {
  readonly host: string;
  readonly port: number;
  readonly setting: string;
}): Promise<{ readonly kind: 'taken' | 'denied'; readonly message: string } | null> {
  try {
    await (await holdPort(host, port, setting))();
    return null;
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException; // of `holdPort`
    if (code === 'EACCES')
      return { kind: 'denied', message: `${setting}: this user may not listen on port ${port}` };
    return { kind: 'taken', message: `${setting}: ${message}` };
  }
}

/** The error of a server that can't listen: names the setting of its port, and who has that port. Others as they are. */
async function listenError(error: Error & { readonly code?: unknown }, setting: string): Promise<Error> {
  if (error.code !== 'EADDRINUSE' || !('port' in error)) return error;
  const holder = await holderOf(Number(error.port));
  const taken = `port ${error.port} is taken${holder === null ? '' : ` by ${holder}`}`;
  return new Error(`${taken}; set ${setting} to another one, or to 0`);
}

/** The process that listens on a TCP port; `null`: not known. Source: proc(5), proc_pid_net(5). */
async function holderOf(port: number): Promise<string | null> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')),
  );
  const rows = tables
    .join('')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const sockets = rows.flatMap(([, local = '', , state, , , , , , inode]) =>
    state === LISTENS && Number.parseInt(local.split(':')[1] ?? '', 16) === port ? [`socket:[${inode}]`] : [],
  );
  for (const pid of await readdir('/proc').catch(() => [])) {
    const handles = /^\d+$/.test(pid) ? await readdir(`/proc/${pid}/fd`).catch(() => []) : [];
    const links = await Promise.all(handles.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
    if (!links.some((link) => sockets.includes(link))) continue;
    return `process ${pid} (${(await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim()})`;
  }
  return null;
}

const LISTENS = '0A';
