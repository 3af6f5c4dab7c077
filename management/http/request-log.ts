import { type FastifyReply, type FastifyRequest, LogController } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A monitor requests this route every few seconds. */
    polled?: boolean;
  }
}

/** The secret at the end of a handover link: a reader of the log must not be able to open its page. */
const SECRET = /\btgh_[\w-]+/g;

/** A request's members in the log. */
export function describeRequest(request: FastifyRequest) {
  const { method, url, host, ip } = request;
  const { remotePort = 0 } = request.socket;
  return {
    method,
    url: url.replace(SECRET, 'tgh_…'),
    host,
    remoteAddress: ip,
    remotePort,
  };
}

/** Logs Fastify's two lines per request. Those of polled routes have the level `debug`, except errors. */
export class RequestLog extends LogController {
  override incomingRequest(request: FastifyRequest, reply: FastifyReply): void {
    if (isPolled(request)) request.log.debug({ req: request }, 'incoming request');
    else super.incomingRequest(request, reply);
  }

  override requestCompleted(
    error: Error | null | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): void {
    if (!error && isPolled(request)) {
      reply.log.debug({ res: reply, responseTime: reply.elapsedTime }, 'request completed');
    } else super.requestCompleted(error, request, reply);
  }
}

function isPolled({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.config.polled === true;
}
