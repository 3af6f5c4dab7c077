import { NotTried } from '../not-tried.ts';
import { ask } from '../tag-server/ask.ts';
import type { EndedRole, ServerPair, StartedRole } from '../tag-server/target.ts';
import type { Placement } from './docker-run.ts';
import { startPreviewFront } from './preview-front.ts';

const CA_PATH = '/etc/tagyard/ca.pem';

interface Deps {
  /** The address at which containers reach this machine. */
  readonly gateway: () => Promise<string | null>;
  /** The base URL of the preview server. Throws where there is none. */
  readonly preview: () => string;
  /** Starts a server in the processing role, with these variables beside its configuration. */
  readonly start: (
    env: Readonly<Record<string, string>>,
    placement: Placement,
  ) => Promise<StartedRole | EndedRole>;
}

/** Starts processing servers, each with a front of the preview server (own name and CA); `close` ends the fronts. */
export function pairStarter({ gateway, preview, start }: Deps) {
  const fronts = new AsyncDisposableStack();

  async function startServer(...args: Parameters<typeof start>): Promise<StartedRole> {
    const role = await start(...args);
    if (role.listens) return role;
    throw new Error(`the server ended with exit code ${role.code}:\n${role.output}`);
  }

  return {
    async start({ trusts }: { readonly trusts: boolean }): Promise<ServerPair> {
      const upstream = preview();
      const address = await gateway();
      if (address === null) {
        throw new NotTried(
          'Docker’s default bridge has no address on this machine: run this on the machine of the engine',
        );
      }
      const front = await startPreviewFront(address, upstream);
      fronts.defer(() => front.close());
      const placement = { hosts: { [front.name]: address }, ca: { file: front.caFile, path: CA_PATH } };
      const previewHost = `${front.name}:${front.port}`;
      const server = await startServer(
        {
          PREVIEW_SERVER_URL: `https://${previewHost}`,
          ...(trusts ? { NODE_EXTRA_CA_CERTS: CA_PATH } : {}),
        },
        placement,
      );
      return {
        tagging: server.url,
        previewHost,
        handedOver: front.handedOver,
        connections: front.connections,
        async assertReachable() {
          if (front.connections() > 0) return;
          const byAddress = `${address}:${front.port}`;
          const control = await startServer({ PREVIEW_SERVER_URL: `https://${byAddress}` }, placement);
          await ask(control.url, '/gtm/debug').finally(control.stop);
          if (front.connections() > 0) return;
          throw new NotTried(
            `containers can’t reach this machine at ${byAddress}: allow connections from Docker’s bridges`,
          );
        },
        stop: server.stop,
      };
    },
    close: () => fronts.disposeAsync(),
  };
}
