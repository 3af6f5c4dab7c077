import { useState } from 'preact/hooks';
import { api } from '../../data/api.ts';
import { usePages } from '../../data/paging.ts';
import { refresh } from '../../data/query.ts';
import { me, readSession } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { TextField } from '../../parts/fields.tsx';
import { Page } from '../../parts/page.tsx';
import { PagedTable } from '../../parts/paged-table.tsx';
import { Empty, Failure } from '../../parts/states.tsx';
import { words } from '../../text/format.ts';
import { AcceptInvitation } from './accept.tsx';

/** The organisations that the person may read. */
export default function OrganisationsScreen() {
  const [text, setText] = useState('');
  const q = text.trim();
  const pages = usePages(`organisations ${q}`, async (cursor) => {
    const query = { ...(q === '' ? {} : { q }), ...(cursor === undefined ? {} : { cursor }) };
    return (await api.get('/organisations', { params: { query } })).data;
  });
  return (
    <Page
      title="Organisations"
      sub="Members of an organisation, such as an agency, have the same role in each of its clients"
    >
      <search class="filters">
        <input
          type="search"
          class="grow"
          data-find
          placeholder="Search name"
          aria-label="Search organisations by name"
          value={text}
          maxLength={120}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </search>
      <PagedTable
        pages={pages}
        rows={4}
        empty={
          q !== '' ? (
            <Empty title="No organisation matches" />
          ) : (
            <Empty title="No organisation yet">
              <p>
                {me().isOperator
                  ? 'Create one below, then put clients into it.'
                  : 'A client needs no organisation: it has members of its own.'}
              </p>
            </Empty>
          )
        }
        head={
          <>
            <th scope="col">Name</th>
            <th scope="col" class="right">
              Your role
            </th>
          </>
        }
        row={({ id, name, role }) => (
          <tr key={id}>
            <td>
              <a class="strong row-link" href={`/console/organisations/${id}`} data-row>
                {name}
              </a>
            </td>
            <td class="right">{role === null ? <span class="dim">operator</span> : words(role)}</td>
          </tr>
        )}
      />
      {me().isOperator && <NewOrganisation />}
      <AcceptInvitation />
    </Page>
  );
}

function NewOrganisation() {
  const [name, setName] = useState('');
  const { isBusy, error, run } = useAction();
  const create = async () => {
    await api.post('/organisations', {
      body: { name: name.trim(), members: [{ subject: me().subject, role: 'owner' }] },
    });
    setName('');
    refresh('organisations');
    await readSession();
  };
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void run(create);
      }}
    >
      <div class="form-row">
        <TextField label="New organisation" value={name} set={setName} required maxLength={120} />
        <button type="submit" disabled={isBusy}>
          Create
        </button>
      </div>
      {error !== null && <Failure error={error} />}
    </form>
  );
}
