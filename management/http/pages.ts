import fastifySwaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';

/** The pages load their own files and this API, nothing from other hosts. They set styles at run time. */
const PAGES_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** A tag: a square with a cut corner and a hole. */
const MARK = `<path fill="#0f766e" d="M5 4h13l10 10v11a3 3 0 0 1-3 3H5a3 3 0 0 1-3-3V7a3 3 0 0 1 3-3z"/>
  <circle cx="9" cy="11" r="2.6" fill="#fff"/><path fill="#fff" d="M9 18h13v2.6H9zm0 4.6h9V25H9z"/>`;

const FAVICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${MARK}</svg>`;

const LOGO = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 150 32" role="img" aria-label="Tagyard">
  ${MARK}<text x="38" y="23" font-family="system-ui, sans-serif" font-size="21" font-weight="650" fill="#fff">Tagyard</text></svg>`;

/** The header's bar has no field for other documents: the pages show this API only. */
const STYLE = `
.swagger-ui .topbar { background: #134e4a; padding: 12px 0; }
.swagger-ui .topbar .download-url-wrapper { display: none; }
.swagger-ui .topbar a.link { flex: none; max-width: none; }
.swagger-ui .info { margin: 32px 0; }
.swagger-ui .btn.authorize { border-color: #0f766e; color: #0f766e; }
.swagger-ui .btn.authorize svg { fill: #0f766e; }
@media (max-width: 640px) {
  .swagger-ui .wrapper { padding: 0 12px; }
  .swagger-ui .opblock-tag { flex-wrap: wrap; }
  .swagger-ui .opblock .opblock-summary-path { max-width: 100%; word-break: break-word; }
}
`;

/** Serves the API's pages under /docs. They show the OpenAPI document, which must be registered before. */
export async function registerPages(app: FastifyInstance): Promise<void> {
  await app.register(fastifySwaggerUi, {
    routePrefix: '/docs',
    staticCSP: PAGES_POLICY,
    logo: { type: 'image/svg+xml', content: LOGO, href: '/', target: '_self' },
    theme: {
      title: 'Tagyard API',
      css: [{ filename: 'tagyard.css', content: STYLE }],
      favicon: [
        {
          filename: 'favicon.svg',
          rel: 'icon',
          sizes: 'any',
          type: 'image/svg+xml',
          content: Buffer.from(FAVICON),
        },
      ],
    },
    uiConfig: {
      docExpansion: 'list',
      displayRequestDuration: true,
      defaultModelsExpandDepth: 0,
      filter: true,
    },
  });
  app.get('/', { schema: { hide: true } }, (_request, reply) => reply.redirect('/console', 302));
}
