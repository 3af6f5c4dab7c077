import { useId, useState } from 'preact/hooks';
import type { components } from '../../../../../base/client/index.ts';
import { api } from '../../data/api.ts';
import type { Container } from '../../data/containers.ts';
import { refresh, useQuery } from '../../data/query.ts';
import { mayEdit } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { Ago, StateMark } from '../../parts/marks.tsx';
import { Section } from '../../parts/page.tsx';
import { Failure, Known } from '../../parts/states.tsx';
import { words } from '../../text/format.ts';

type Checklist = components['schemas']['Checklist'];

/** The API takes no larger export. */
const MOST_BYTES = 8 * 1024 * 1024;

/** The points to set up in Tag Manager: where to click, and what is known of each. */
export function ChecklistSection({ container: { id, clientId } }: { container: Container }) {
  const query = useQuery(`checklist ${id}`, async () => {
    return (await api.get('/server-containers/{id}/checklist', { params: { path: { id } } })).data;
  });
  const done = query.data?.items.filter(({ state }) => state === 'done').length;
  return (
    <Section
      id="checklist"
      title="Set-up in Tag Manager"
      aside={
        query.data !== undefined && (
          <span class="dim small">
            {done} of {query.data.items.length} done
          </span>
        )
      }
    >
      <Known query={query} rows={6}>
        {({ items }) => (
          <ol class="checklist">
            {items.map((item, index) => (
              <Point key={item.id} item={item} number={index + 1} />
            ))}
          </ol>
        )}
      </Known>
      {mayEdit(clientId) && <Upload id={id} />}
    </Section>
  );
}

function Point({ item, number }: { item: Checklist['items'][number]; number: number }) {
  const { title, where, state, detail, by, checkedAt } = item;
  return (
    <li>
      <span class="dim number-mark" aria-hidden="true">
        {number}
      </span>
      <div class="grow">
        <p class="strong">{title}</p>
        <Where text={where} />
        <p class={`small ${state === 'open' ? 'bad-text' : 'dim'}`}>
          {words(detail)}
          {checkedAt !== null && (
            <>
              {' · '}
              {by === 'export' ? 'by the export, ' : 'checked from outside '}
              <Ago at={checkedAt} />
            </>
          )}
        </p>
      </div>
      <StateMark of={state} />
    </li>
  );
}

/** Where to click: `Server container: Admin, Container settings` as a path. */
function Where({ text }: { text: string }) {
  const [place = '', path = ''] = text.split(/: (.*)/s);
  return (
    <p class="small where">
      {[place, ...path.split(', ')].map((step, index) => (
        <span key={step} class={index === 0 ? 'dim' : ''}>
          {index > 0 && (
            <span class="dim" aria-hidden="true">
              {' › '}
            </span>
          )}
          {step}
        </span>
      ))}
    </p>
  );
}

/** Checks an export of Tag Manager. Only what it says of the points is kept. */
function Upload({ id }: { id: string }) {
  const field = useId();
  const [name, setName] = useState<string | null>(null);
  const [refused, refuse] = useState<string | null>(null);
  const { isBusy, error, run } = useAction();
  const check = async (file: File) => {
    setName(null);
    refuse(null);
    if (file.size > MOST_BYTES) {
      refuse('The file is larger than 8 MiB. An export of one container is smaller.');
      return;
    }
    let body: unknown;
    try {
      body = JSON.parse(await file.text());
    } catch {
      refuse('This is not JSON. Choose the file that Tag Manager’s “Export container” saves.');
      return;
    }
    const isChecked = await run(() =>
      api.post('/server-containers/{id}/checklist/export', {
        params: { path: { id } },
        body: body as never, // the API judges what the file has
      }),
    );
    if (!isChecked) return;
    setName(file.name);
    refresh(`checklist ${id}`);
  };
  return (
    <div class="upload">
      <label for={field} class="strong">
        Check an export
      </label>
      <p class="small dim" id={`${field}-hint`}>
        In Tag Manager: Admin › Export container, for the server container and for the web container, one file
        each. Nothing of the file is kept but the states above.
      </p>
      <input
        id={field}
        type="file"
        accept=".json,application/json"
        aria-describedby={`${field}-hint`}
        disabled={isBusy}
        onChange={({ currentTarget }) => {
          const file = currentTarget.files?.[0];
          // The same file can be chosen again after it was changed.
          currentTarget.value = '';
          if (file !== undefined) void check(file);
        }}
      />
      <p role="status" class="small">
        {isBusy ? 'Checking…' : name !== null && `${name} was checked.`}
      </p>
      {refused !== null && (
        <p class="notice bad" role="alert">
          {refused}
        </p>
      )}
      {error !== null && <Failure error={error} />}
    </div>
  );
}
