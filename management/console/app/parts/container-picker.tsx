import { useEffect, useState } from 'preact/hooks';
import { fetchContainers, type ListedContainer, readContainer } from '../data/containers.ts';
import { useQuery } from '../data/query.ts';
import { clientName } from '../data/session.ts';
import { Dialog } from './dialog.tsx';
import { Failure } from './states.tsx';

const MOST = 12;

/** Chooses one of any number of containers by part of its name or of a domain; `null`: all of them. */
export function ContainerPicker({ value, set }: { value: string | null; set: (id: string | null) => void }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="picker" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        <span class="hidden">Container: </span>
        {value === null ? 'All containers' : <ContainerName id={value} />}
      </button>
      {isOpen && (
        <Choices
          hasAll={value !== null}
          close={() => setOpen(false)}
          set={(id) => {
            setOpen(false);
            set(id);
          }}
        />
      )}
    </>
  );
}

/** The name of a container; the beginning of its id until the name is known, or if it can't be read. */
export function ContainerName({ id }: { id: string }) {
  const { data } = useQuery(`container ${id}`, () => readContainer(id));
  return <>{data?.container.name ?? id.slice(0, 8)}</>;
}

function Choices({
  hasAll,
  set,
  close,
}: {
  hasAll: boolean;
  set: (id: string | null) => void;
  close: () => void;
}) {
  const [text, setText] = useState('');
  const [found, setFound] = useState<readonly ListedContainer[] | null>(null);
  const [at, setAt] = useState(0);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const q = text.trim();
    let isOld = false;
    fetchContainers({ ...(q === '' ? {} : { q }), sort: 'name', limit: MOST }).then(
      ({ containers }) => {
        if (isOld) return;
        setFound(containers);
        setError(null);
        setAt(0);
      },
      (failure) => {
        if (!isOld) setError(failure);
      },
    );
    return () => {
      isOld = true;
    };
  }, [text]);
  const choices = [
    ...(hasAll && text.trim() === '' ? [{ id: null, name: 'All containers', client: '' }] : []),
    ...(found ?? []).map(({ id, name, clientId }) => ({ id, name, client: clientName(clientId) })),
  ];
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setAt((choices.length + at + step) % Math.max(1, choices.length));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      const chosen = choices[at];
      if (chosen !== undefined) set(chosen.id);
    }
  };
  return (
    <Dialog title="Choose a container" close={close}>
      <input
        class="wide-input"
        role="combobox"
        aria-expanded="true"
        aria-controls="picker-list"
        aria-activedescendant={`picker-${at}`}
        aria-label="Find a container by name or domain"
        placeholder="Name or domain"
        autoComplete="off"
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <div class="palette" id="picker-list" role="listbox" aria-label="Containers">
        {choices.map(({ id, name, client }, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above handles the keys
          <div
            key={id ?? 'all'}
            id={`picker-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            onClick={() => set(id)}
          >
            <span class="grow">{name}</span>
            <span class="small">{client}</span>
          </div>
        ))}
      </div>
      {error !== null && <Failure error={error} />}
      {error === null && found?.length === 0 && <p class="dim">No container matches.</p>}
    </Dialog>
  );
}
