import { useEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { fetchContainers } from '../data/containers.ts';
import { Dialog } from '../parts/dialog.tsx';
import { isPaletteOpen } from './palette-state.ts';
import { visibleGroups } from './places.tsx';

interface Choice {
  readonly path: string;
  readonly name: string;
  readonly kind: string;
}

const MOST = 8;

/** Opens a screen or a container by part of its name. */
export function Palette() {
  return isPaletteOpen.value ? <OpenPalette /> : null;
}

function OpenPalette() {
  const { route } = useLocation();
  const [text, setText] = useState('');
  const [found, setFound] = useState<readonly Choice[]>([]);
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const screens = visibleGroups()
    .flatMap(({ places }) => places)
    .filter(({ name }) => name.toLowerCase().includes(text.trim().toLowerCase()))
    .map(({ path, name }) => ({ path, name, kind: 'Screen' }));
  const choices = [...found, ...screens].slice(0, 14);
  useEffect(() => input.current?.focus(), []);
  useEffect(() => {
    const q = text.trim();
    let isOld = false;
    const search = fetchContainers({ ...(q === '' ? {} : { q }), sort: 'name', limit: MOST });
    search.then(
      ({ containers }) => {
        if (isOld) return;
        setFound(
          containers.map(({ id, name }) => ({ path: `/console/containers/${id}`, name, kind: 'Container' })),
        );
        setAt(0);
      },
      () => {
        if (!isOld) setFound([]);
      },
    );
    return () => {
      isOld = true;
    };
  }, [text]);
  const close = () => {
    isPaletteOpen.value = false;
  };
  const go = (choice: Choice | undefined) => {
    if (choice === undefined) return;
    close();
    if (choice.path.startsWith('/console')) route(choice.path);
    else location.assign(choice.path);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setAt((choices.length + at + step) % Math.max(1, choices.length));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      go(choices[at]);
    }
  };
  return (
    <Dialog title="Go to" close={close}>
      <input
        ref={input}
        class="wide-input"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={`palette-${at}`}
        aria-label="Find a container or a screen"
        placeholder="Find a container or a screen"
        autoComplete="off"
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <div class="palette" id="palette-list" role="listbox" aria-label="Matches">
        {choices.map((choice, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above handles the keys
          <div
            key={choice.path}
            id={`palette-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            onClick={() => go(choice)}
          >
            <span class="grow">{choice.name}</span>
            <span class="small">{choice.kind}</span>
          </div>
        ))}
      </div>
      {choices.length === 0 && <p class="dim">Nothing matches.</p>}
    </Dialog>
  );
}
