import { createServer, type ServerResponse } from 'node:http';

const MESSAGE = `id: 1\nevent: changed\ndata: ${JSON.stringify({ detail: 'x'.repeat(300) })}\n\n`;

/**
 * A process that only keeps responses open. On each message of its parent process, it writes one event to all of them.
 */
const open: ServerResponse[] = [];
const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('retry: 2000\n\n');
  open.push(response);
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.({ url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}` });
});
process.on('message', () => {
  for (const response of open) response.write(MESSAGE);
});
process.on('disconnect', () => process.exit());
