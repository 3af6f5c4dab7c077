import accepts from 'accepts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ManagementProblem } from '../http/errors.ts';
import { ASSETS_PATH, bundleConsole, type ConsoleFiles, parseConsole } from './build.ts';

/** Scripts and styles are the console's own files; no text becomes code (Trusted Types). */
const CONSOLE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HIDDEN = { schema: { hide: true } };

/** Serves the console: one page for all its addresses, and its files, which never change under one name. */
export function consoleRoutes(): (app: FastifyInstance) => Promise<void> {
  let files: Promise<ConsoleFiles> | null = null;
  // At the first request: most starts of the API need no console.
  const load = () => {
    files ??= bundleConsole().then(parseConsole);
    files.catch(() => {
      files = null;
    });
    return files;
  };

  async function page(request: FastifyRequest, reply: FastifyReply) {
    reply.header('content-security-policy', CONSOLE_POLICY);
    // The page names the newest files: browsers revalidate it.
    reply.header('cache-control', 'no-cache');
    return send(await load(), 'index.html', { request, reply });
  }

  return async (app) => {
    app.get('/console', HIDDEN, page);
    app.get('/console/*', HIDDEN, page);
    app.get<{ Params: { name: string } }>(`${ASSETS_PATH}/:name`, HIDDEN, async (request, reply) => {
      const { name } = request.params;
      const all = await load();
      if (!Object.hasOwn(all, name) || name === 'index.html') throw new ManagementProblem('not_found');
      reply.header('cache-control', 'public, max-age=31536000, immutable');
      return send(all, name, { request, reply });
    });
  };
}

function send(
  files: ConsoleFiles,
  name: string,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
) {
  const file = files[name];
  if (file === undefined) throw new ManagementProblem('not_found');
  const accepted = accepts(request.raw);
  const encoding = (['br', 'gzip'] as const).find((one) => accepted.encodings(one) !== false);
  reply.header('vary', 'accept-encoding').type(file.type);
  if (encoding !== undefined) reply.header('content-encoding', encoding);
  return reply.send(Buffer.from(file[encoding ?? 'plain'], 'base64'));
}
