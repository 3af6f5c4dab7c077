import { createServer } from 'node:http';

/** The server answers after this many milliseconds, so that its client, which asks all the time, needs no pause. */
const DELAY_MS = 100;

/** The idle server of `control.ts`. It ends with its parent. */
const server = createServer((_request, response) => {
  setTimeout(() => response.end('ok'), DELAY_MS);
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') process.send?.(`http://127.0.0.1:${address.port}`);
});
process.once('disconnect', () => process.exit(0));
