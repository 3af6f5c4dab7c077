import { signal } from '@preact/signals';
import { refresh } from './query.ts';

/** Whether changes arrive by themselves at the moment. */
export const isLive = signal(false);

/** Follows the events of all containers that the person may read, and reads again what they concern. */
export function followEvents(): void {
  const source = new EventSource('/events');
  source.onopen = () => {
    // What happened while the connection was away is unknown.
    if (!isLive.value) refresh('container');
    isLive.value = true;
  };
  source.onerror = () => {
    isLive.value = false;
  };
  const onEvent = ({ data }: MessageEvent<string>) => {
    const event: unknown = JSON.parse(data);
    if (typeof event !== 'object' || event === null || !('containerId' in event)) return;
    refresh(String(event.containerId), 'containers', 'operation', 'instance');
  };
  for (const kind of ['message', 'status', 'changed', 'manifest_refused', 'host', 'proof']) {
    source.addEventListener(kind, onEvent);
  }
}
