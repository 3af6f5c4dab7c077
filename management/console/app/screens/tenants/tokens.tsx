import { useState } from 'preact/hooks';
import { api } from '../../data/api.ts';
import { usePages } from '../../data/paging.ts';
import { refresh } from '../../data/query.ts';
import { clientName, mayAct, me } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { ChoiceField, TextField } from '../../parts/fields.tsx';
import { Ago, Code } from '../../parts/marks.tsx';
import { Page, Section } from '../../parts/page.tsx';
import { PagedTable } from '../../parts/paged-table.tsx';
import { Empty, Failure } from '../../parts/states.tsx';
import { words } from '../../text/format.ts';

const SCOPES = ['viewer', 'editor', 'admin'] as const;

/** Tokens of programs: what each may do, and when it was used last. */
export default function TokensScreen() {
  const [revoked, revoke] = useState<{ id: string; name: string } | null>(null);
  const pages = usePages('tokens', async (cursor) => {
    return (await api.get('/tokens', { params: { query: cursor === undefined ? {} : { cursor } } })).data;
  });
  return (
    <Page title="Tokens" sub="For programs that call the API">
      <PagedTable
        pages={pages}
        rows={4}
        empty={
          <Empty title="No token yet">
            <p>A program, an import or an assistant calls the API with a token.</p>
          </Empty>
        }
        head={
          <>
            <th scope="col">Name</th>
            <th scope="col">Belongs to</th>
            <th scope="col">Role</th>
            <th scope="col">Last used</th>
            <th scope="col">Ends</th>
            <th scope="col">
              <span class="hidden">Actions</span>
            </th>
          </>
        }
        row={({ id, name, client, scopes, lastUsedAt, expiresAt }) => (
          <tr key={id}>
            <td class="strong">{name}</td>
            <td>{client === null ? 'organisation' : clientName(client)}</td>
            <td>{scopes.map(words).join(', ')}</td>
            <td class="dim">{lastUsedAt === null ? 'never' : <Ago at={lastUsedAt} />}</td>
            <td class="dim">{expiresAt === null ? 'never' : <Ago at={expiresAt} />}</td>
            <td class="right">
              <button type="button" aria-label={`Revoke ${name}`} onClick={() => revoke({ id, name })}>
                Revoke
              </button>
            </td>
          </tr>
        )}
      />
      <NewToken />
      {revoked !== null && (
        <Confirm
          title={`Revoke ${revoked.name}?`}
          verb="Revoke"
          isDanger
          close={() => revoke(null)}
          act={async () => {
            await api.delete('/tokens/{id}', { params: { path: { id: revoked.id } } });
            refresh('tokens');
          }}
        >
          <p>Programs with it can no longer call the API.</p>
        </Confirm>
      )}
    </Page>
  );
}

function NewToken() {
  const clients = me().clients.filter(({ id }) => mayAct(id));
  const [name, setName] = useState('');
  const [client, setClient] = useState(clients[0]?.id ?? '');
  const [scope, setScope] = useState<(typeof SCOPES)[number]>('viewer');
  const [ends, setEnds] = useState('');
  const [made, setMade] = useState<string | null>(null);
  const { isBusy, error, run } = useAction();
  if (clients.length === 0) return null;
  const create = async () => {
    const { data } = await api.post('/tokens', {
      body: {
        name: name.trim(),
        client,
        scopes: [scope],
        ...(ends === '' ? {} : { expiresAt: new Date(`${ends}T23:59:59Z`).toISOString() }),
      },
    });
    setMade(data.value);
    setName('');
    refresh('tokens');
  };
  return (
    <Section id="new-token" title="New token">
      {made !== null && (
        <div class="notice good">
          <p>Keep it in a safe place. It is shown only now.</p>
          <Code text={made} what="token" />
        </div>
      )}
      <form
        class="form-row"
        onSubmit={(event) => {
          event.preventDefault();
          void run(create);
        }}
      >
        <TextField label="Name" value={name} set={setName} required maxLength={100} />
        <ChoiceField
          label="Client"
          value={client}
          of={clients.map((one) => ({ value: one.id, name: one.name }))}
          set={setClient}
        />
        <ChoiceField
          label="Role"
          value={scope}
          of={SCOPES.map((value) => ({ value, name: words(value) }))}
          set={setScope}
        />
        <TextField label="Ends (empty: in 90 days)" type="date" value={ends} set={setEnds} />
        <button type="submit" class="primary" disabled={isBusy}>
          Create
        </button>
      </form>
      {error !== null && <Failure error={error} />}
    </Section>
  );
}
