import { buildAge } from './age.ts';
import { fetchContainer } from './container.ts';
import { lookupDnsFirst } from './lookup.ts';
import { fetchPolicy, NO_POLICY } from './policy/policy.ts';
import { buildTagServer } from './server.ts';
import { readSettings } from './settings.ts';

/** How long open requests may continue after a stop signal. */
const STOP_MS = 500;

async function main(): Promise<void> {
  const settings = readSettings(process.argv.slice(2), process.env);
  const age = buildAge();
  const { policyScriptUrl } = settings;
  // If a policy is set, no template may run before it is fetched.
  const policy =
    policyScriptUrl === null
      ? NO_POLICY
      : await fetchPolicy(policyScriptUrl, settings.config.id, { lookup: lookupDnsFirst() });
  const server = buildTagServer(settings, age, policy, console.log);
  const stop = () => {
    // Before the server listens, it waits for its container, without a time limit.
    if (!server.listening) process.exit(0);
    server.close(() => process.exit(0));
    server.closeIdleConnections();
    setTimeout(() => server.closeAllConnections(), STOP_MS).unref();
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  // `disconnect`: the supervisor, which started this process with an IPC channel, has exited.
  if (process.channel !== undefined) process.once('disconnect', stop);

  if (settings.role === 'preview') {
    // Only the processing role fetches the container, so `preview` starts even with a refused `auth`.
    if (settings.previewServerUrl !== null) {
      console.warn('PREVIEW_SERVER_URL should not be set on the preview server.');
    }
  } else {
    // If the first fetch fails, the process ends. Later failures are only logged; the old container stays in use.
    const refresh = async () => {
      await fetchContainer(settings);
      age.refresh();
    };
    await refresh();
    if (settings.refreshSeconds > 0) {
      const again = () => void refresh().catch(({ message }: Error) => console.error(message));
      setInterval(again, settings.refreshSeconds * 1000).unref();
    }
  }

  server.on('error', fail);
  server.listen({ port: settings.port, host: settings.host || undefined }, () => {
    const bound = server.address();
    const port = bound !== null && typeof bound === 'object' ? bound.port : settings.port;
    console.log(`Tag server (${settings.role}) listens on port ${port}.`);
  });
}

function fail(error: unknown): never {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}

main().catch(fail);
