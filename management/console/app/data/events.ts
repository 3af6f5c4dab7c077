import { signal } from '@preact/signals';
import { refresh } from './query.ts';
import { followStream } from './stream.ts';

/** Whether changes arrive by themselves at the moment. */
export const isLive = signal(false);

/** Events within this time cause one refresh; milliseconds. */
const BATCH_MS = 200;
const KINDS = ['message', 'status', 'state', 'changed', 'manifest_refused', 'host', 'proof', 'policy'];

/**
 * Follows the events of all containers that the person may read, and refreshes the data that they concern. Returns a
 * function that ends this.
 */
export function followEvents(): () => void {
  const concerned = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const refreshLater = (container: string) => {
    for (const part of [container, 'containers', 'operation', 'instance']) concerned.add(part);
    timer ??= setTimeout(() => {
      timer = undefined;
      refresh(...concerned);
      concerned.clear();
    }, BATCH_MS);
  };
  const end = followStream('/events', {
    kinds: KINDS,
    onOpen: () => {
      // What happened while the connection was away is unknown.
      if (!isLive.value) refresh('container', 'operation', 'instance');
      isLive.value = true;
    },
    onLost: () => {
      isLive.value = false;
    },
    onEvent: ({ data }) => {
      const event: unknown = JSON.parse(data);
      if (typeof event !== 'object' || event === null || !('containerId' in event)) return;
      refreshLater(String(event.containerId));
    },
  });
  return () => {
    end();
    clearTimeout(timer);
  };
}
