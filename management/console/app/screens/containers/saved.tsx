import { useState } from 'preact/hooks';
import { forgetFilter, savedFilters, saveFilter } from '../../data/saved-filters.ts';

/** The part of the list's address that a saved filter keeps: everything but the page. */
export function filterText(query: Readonly<Record<string, string>>): string {
  const kept = ['q', 'client', 'state', 'sort'] as const;
  const text = new URLSearchParams();
  for (const name of kept) {
    const value = query[name];
    if (value) text.set(name, value);
  }
  return text.toString();
}

/** The person's filters by name, and a way to keep the present one. */
export function SavedFilters({ query }: { query: Readonly<Record<string, string>> }) {
  const [name, setName] = useState<string | null>(null);
  const filters = savedFilters();
  const present = filterText(query);
  const own = filters.find((one) => one.query === present);
  if (filters.length === 0 && present === '') return null;
  return (
    <div class="saved">
      {filters.length > 0 && (
        <ul class="chips" aria-label="Saved filters">
          {filters.map((one) => (
            <li key={one.name}>
              <a
                class="chip"
                href={`/console/containers?${one.query}`}
                aria-current={one === own ? 'true' : undefined}
              >
                {one.name}
              </a>
              {one === own && (
                <button
                  type="button"
                  class="quiet"
                  aria-label={`Forget the filter ${one.name}`}
                  onClick={() => forgetFilter(one.name)}
                >
                  Forget
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      {present !== '' &&
        own === undefined &&
        (name === null ? (
          <button type="button" class="quiet" onClick={() => setName('')}>
            Save this filter
          </button>
        ) : (
          <form
            class="saving"
            onSubmit={(event) => {
              event.preventDefault();
              saveFilter({ name: name.trim(), query: present });
              setName(null);
            }}
          >
            <input
              aria-label="Name of the filter"
              placeholder="Name of the filter"
              value={name}
              maxLength={40}
              pattern=".*\S.*"
              title="A name, such as Failed shops"
              required
              ref={(field) => field?.focus()}
              onInput={({ currentTarget }) => setName(currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === 'Escape') setName(null);
              }}
            />
            <button type="submit" class="primary">
              Save
            </button>
            <button type="button" onClick={() => setName(null)}>
              Cancel
            </button>
          </form>
        ))}
    </div>
  );
}
