import type { ComponentChildren } from 'preact';
import { useId, useRef, useState } from 'preact/hooks';

interface Tab {
  readonly key: string;
  readonly name: string;
}

/** Tabs of which one panel is shown. The arrow keys choose the next and the previous one. */
export function Tabs({
  label,
  of,
  children,
}: {
  label: string;
  of: readonly Tab[];
  children: (key: string) => ComponentChildren;
}) {
  const [chosen, choose] = useState(of[0]?.key ?? '');
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const at = Math.max(
    0,
    of.findIndex(({ key }) => key === chosen),
  );
  const current = of[at];
  if (current === undefined) return null;
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    const to = event.key === 'Home' ? 0 : event.key === 'End' ? of.length - 1 : at + step;
    const next = of[(to + of.length) % of.length];
    if (next === undefined || next === current) return;
    event.preventDefault();
    choose(next.key);
    list.current?.querySelector<HTMLElement>(`[data-key="${CSS.escape(next.key)}"]`)?.focus();
  };
  return (
    <div class="tabs">
      <div class="tab-list" role="tablist" aria-label={label} ref={list}>
        {of.map(({ key, name }) => (
          <button
            key={key}
            type="button"
            role="tab"
            id={`${id}-${key}`}
            data-key={key}
            aria-selected={key === current.key}
            aria-controls={`${id}-panel`}
            tabIndex={key === current.key ? 0 : -1}
            onClick={() => choose(key)}
            onKeyDown={onKeyDown}
          >
            {name}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${current.key}`}>
        {children(current.key)}
      </div>
    </div>
  );
}
