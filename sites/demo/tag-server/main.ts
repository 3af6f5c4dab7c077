import { buildTagServer } from './server.ts';
import { readSettings, type TagServerSettings } from './settings.ts';

/** How long open requests may continue after a stop signal. */
const STOP_MS = 500;

/**
 * The real server fetches its code before it listens, and exits if its `auth` is refused. The stand-in refuses
 * `auth=bad` and `env=BAD`. Its error contains the secret like the real one, so Tagyard must redact what it logs.
 */
function fetchContainer({ config }: TagServerSettings): void {
  if (config.auth !== 'bad' && config.env !== 'BAD') return;
  const query = `id=${config.id}&gtm_preview=env-${config.env}&gtm_auth=${config.auth}`;
  throw new Error(`Request to https://www.googletagmanager.com/server.js?${query} failed with status 403`);
}

function main(): void {
  const settings = readSettings(process.argv.slice(2), process.env);
  if (settings.role === 'preview' && settings.previewServerUrl !== null) {
    console.warn('PREVIEW_SERVER_URL should not be set on the preview server.');
  }
  fetchContainer(settings);
  const server = buildTagServer(settings);
  server.on('error', fail);
  server.listen({ port: settings.port, host: settings.host || undefined }, () => {
    const bound = server.address();
    const port = bound !== null && typeof bound === 'object' ? bound.port : settings.port;
    console.log(`Tag server (${settings.role}) listens on port ${port}.`);
  });

  const stop = () => {
    server.close(() => process.exit(0));
    server.closeIdleConnections();
    setTimeout(() => server.closeAllConnections(), STOP_MS).unref();
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  // A supervisor that started it over an IPC channel has exited.
  if (process.channel !== undefined) process.once('disconnect', stop);
}

function fail(error: unknown): never {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}

try {
  main();
} catch (error) {
  fail(error);
}
