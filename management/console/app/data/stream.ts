/**
 * The pause before a refused stream (401, 429, 503) is opened again, milliseconds: browsers don’t do that by
 * themselves.
 */
const REOPEN_MS = 5_000;

interface Listener {
  readonly kinds: readonly string[];
  onEvent(event: MessageEvent<string>): void;
  onOpen?(): void;
  /**
   * The connection is lost. If the stream `hasEnded`, missed events stay unknown; else the browser continues it.
   */
  onLost?(hasEnded: boolean): void;
}

/**
 * Follows a stream of events while the page is visible: browsers have few connections for all pages together. Returns a
 * function that ends this.
 */
export function followStream(path: string, { kinds, onEvent, onOpen, onLost }: Listener): () => void {
  let end = () => {};
  const open = () => {
    const source = new EventSource(path);
    let timer: ReturnType<typeof setTimeout> | undefined;
    source.onopen = () => onOpen?.();
    source.onerror = () => {
      onLost?.(source.readyState === EventSource.CLOSED);
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, REOPEN_MS);
    };
    for (const kind of kinds) source.addEventListener(kind, onEvent);
    end = () => {
      clearTimeout(timer);
      source.close();
    };
  };
  const onVisibility = () => {
    end();
    if (document.hidden) onLost?.(true);
    else open();
  };
  document.addEventListener('visibilitychange', onVisibility);
  if (!document.hidden) open();
  return () => {
    document.removeEventListener('visibilitychange', onVisibility);
    end();
  };
}
