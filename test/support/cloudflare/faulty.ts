import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

/** The fault of one call: it never arrives, or gets a wrong, late or no answer. */
export type Fault =
  | {
      readonly kind: 'refuse';
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly body?: string;
    }
  /** Carried out, but answered with `status` (default: 500). */
  | { readonly kind: 'fail after'; readonly status?: number }
  /** The true answer, cut in the middle, but complete as HTTP. */
  | { readonly kind: 'truncate' }
  /** The true answer with its JSON changed. `sent`: the body of the call. */
  | { readonly kind: 'change'; readonly change: (body: never, sent: string) => unknown }
  /** Carried out, and answered later. */
  | { readonly kind: 'hold'; readonly until: Promise<void> }
  | { readonly kind: 'hang' }
  | { readonly kind: 'drop' };

interface Planned {
  readonly fault: Fault;
  readonly when: (method: string, path: string, body: string) => boolean;
  left: number;
}

/** A proxy in front of `upstream` (its base URL) that forwards all calls without a planned fault. */
export async function startFaultyCloudflare(upstream: string) {
  const planned: Planned[] = [];
  const calls: string[] = [];
  const faulted: number[] = [];
  const prefix = new URL(upstream).pathname;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = request;
    const path = url.slice(prefix.length).split('?')[0] ?? '';
    const index = calls.push(`${method} ${path}`) - 1;
    const body = Buffer.concat(await request.toArray());
    const plan = planned.find(({ left, when }) => left > 0 && when(method, path, body.toString()));
    if (plan !== undefined) {
      plan.left -= 1;
      faulted.push(index);
    }
    const fault = plan?.fault;
    if (fault?.kind === 'hang') return;
    if (fault?.kind === 'drop') {
      request.socket.destroy();
      return;
    }
    if (fault?.kind === 'refuse') {
      response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
      response.end(fault.body ?? '');
      return;
    }
    const answer = await fetch(new URL(url, upstream), {
      method,
      headers: {
        authorization: request.headers.authorization ?? '',
        ...(request.headers['content-type'] ? { 'content-type': request.headers['content-type'] } : {}),
      },
      ...(body.length === 0 ? {} : { body }),
    });
    const text = await answer.text();
    if (fault?.kind === 'hold') await fault.until;
    const limits = [...answer.headers].filter(([name]) => name.includes('ratelimit'));
    const headers = {
      ...Object.fromEntries(limits),
      'content-type': answer.headers.get('content-type') ?? 'text/plain',
    };
    if (fault?.kind === 'fail after') response.writeHead(fault.status ?? 500).end('upstream error');
    else if (fault?.kind === 'truncate') response.writeHead(200, headers).end(text.slice(0, text.length / 2));
    else if (fault?.kind === 'change') {
      response
        .writeHead(200, headers)
        .end(JSON.stringify(fault.change(JSON.parse(text) as never, body.toString())));
    } else response.writeHead(answer.status, headers).end(text);
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) =>
      response.destroy(error instanceof Error ? error : undefined),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');

  return {
    url: `http://127.0.0.1:${address.port}${prefix}`,
    calls,
    /** Which of the calls went wrong, by their places in `calls`. */
    faulted,
    /** Plans a fault for the next `times` calls for which `when` is true (by default, for any). */
    plan(fault: Fault, when: Planned['when'] = () => true, times = 1) {
      planned.push({ fault, when, left: times });
    },
    heal() {
      planned.length = 0;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export type FaultyCloudflare = Awaited<ReturnType<typeof startFaultyCloudflare>>;
