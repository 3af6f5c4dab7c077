import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ManagementProblem } from '../http/errors.ts';

const STYLE = `
:root { color-scheme: light dark; --accent: light-dark(#0f766e, #5eead4); --soft: light-dark(#586662, #9fb0ab); }
body { margin: 0; background: light-dark(#f6f8f7, #111716); color: light-dark(#16211f, #e6edeb); font: 1rem/1.55 system-ui, sans-serif; }
main { max-width: 36rem; margin: 0 auto; padding: clamp(2rem, 12vh, 8rem) 1.25rem; }
h1 { margin: 0 0 .75rem; font-size: 1.5rem; line-height: 1.2; }
a { color: var(--accent); font-weight: 600; }
.soft { color: var(--soft); font-size: .875rem; overflow-wrap: anywhere; }
`;

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The texts of the page, by the problem's code. */
const TEXTS: Readonly<Record<string, readonly [heading: string, next: string]>> = {
  login_unavailable: [
    'You can’t log in now',
    'Sessions that are open stay open, and the API answers as before. If this lasts, give the request’s id to the operator of this installation.',
  ],
  invalid_login: [
    'This login can’t be completed',
    'Nothing was changed. If a new login ends here too, give the request’s id to the operator of this installation.',
  ],
};

/** Answers a failed step of a login: with a page if a browser navigates, else with the problem itself. */
export function answerFailedLogin(
  error: unknown,
  { request, reply, returnTo }: { request: FastifyRequest; reply: FastifyReply; returnTo: string },
): FastifyReply {
  if (!(error instanceof ManagementProblem)) throw error;
  const [heading, next] = TEXTS[error.code] ?? [];
  const isBrowser = /\btext\/html\b/.test(request.headers.accept ?? '');
  if (heading === undefined || next === undefined) throw error;
  if (error.cause !== undefined) request.log.warn({ err: error }, 'a login has failed');
  if (!isBrowser) throw error;
  const again = `/session/login?${new URLSearchParams({ returnTo })}`;
  const page = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${heading} · Tagyard</title><style>${STYLE}</style></head>
<body><main><h1>${heading}</h1><p>${error.message}.</p><p>${next}</p>
<p><a href="${again.replaceAll('&', '&amp;')}">Log in again</a></p>
<p class="soft">Request ${request.id}</p></main></body></html>`;
  return reply
    .code(error.status)
    .type('text/html; charset=utf-8')
    .header('content-security-policy', POLICY)
    .send(page);
}
