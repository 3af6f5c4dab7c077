import { createServer, type Socket } from 'node:net';

/** A server that accepts connections and never answers, like a process after SIGSTOP. */
export async function silentServer(): Promise<{
  readonly port: number;
  readonly url: string;
  close(): Promise<void>;
}> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen({ port: 0, host: '127.0.0.1' }, resolve);
  await promise;
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return {
    port: address.port,
    url: `http://127.0.0.1:${address.port}`,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}
