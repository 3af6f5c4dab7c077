import { useState } from 'preact/hooks';
import { api } from '../../data/api.ts';
import { usePages } from '../../data/paging.ts';
import { refresh } from '../../data/query.ts';
import { me, readSession } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { TextField } from '../../parts/fields.tsx';
import { StateMark } from '../../parts/marks.tsx';
import { Page } from '../../parts/page.tsx';
import { PagedTable } from '../../parts/paged-table.tsx';
import { Empty, Failure } from '../../parts/states.tsx';
import { words } from '../../text/format.ts';
import { AcceptInvitation } from './accept.tsx';

/** The clients that the person may read. */
export default function ClientsScreen() {
  const pages = usePages('clients', async (cursor) => {
    const params = { query: cursor === undefined ? {} : { cursor } };
    return (await api.get('/clients', { params })).data;
  });
  return (
    <Page title="Clients">
      {me().isOperator && <NewClient />}
      <PagedTable
        pages={pages}
        rows={6}
        empty={
          <Empty title="No client yet">
            <p>
              {me().isOperator ? 'Create one above.' : 'Ask an owner for an invitation, and accept it below.'}
            </p>
          </Empty>
        }
        head={
          <>
            <th scope="col">Name</th>
            <th scope="col">Your role</th>
            <th scope="col">State</th>
          </>
        }
        row={({ id, name, role, archivedAt }) => (
          <tr key={id}>
            <td>
              <a class="strong row-link" href={`/console/clients/${id}`} data-row>
                {name}
              </a>
            </td>
            <td>{role === null ? <span class="dim">operator</span> : words(role)}</td>
            <td>
              <StateMark of={archivedAt === null ? 'active' : 'archived'} />
            </td>
          </tr>
        )}
      />
      <AcceptInvitation />
    </Page>
  );
}

function NewClient() {
  const [name, setName] = useState('');
  const { isBusy, error, run } = useAction();
  const create = async () => {
    await api.post('/clients', {
      body: { name: name.trim(), members: [{ subject: me().subject, role: 'owner' }] },
    });
    setName('');
    refresh('clients');
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
        <TextField label="New client" value={name} set={setName} required maxLength={100} />
        <button type="submit" class="primary" disabled={isBusy}>
          Create
        </button>
      </div>
      {error !== null && <Failure error={error} />}
    </form>
  );
}
