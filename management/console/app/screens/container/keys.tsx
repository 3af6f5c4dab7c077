import { useState } from 'preact/hooks';
import { api } from '../../data/api.ts';
import type { Container } from '../../data/containers.ts';
import { refresh, useQuery } from '../../data/query.ts';
import { mayAct, mayEdit } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { AreaField } from '../../parts/fields.tsx';
import { StateMark } from '../../parts/marks.tsx';
import { Section } from '../../parts/page.tsx';
import { Failure, Known } from '../../parts/states.tsx';
import { decodeConfig } from '../../text/container-config.ts';

/** Loader tokens, the container configuration and the service account: what is replaced from time to time. */
export function KeysSection({ container }: { container: Container }) {
  const { id, clientId, serviceAccount } = container;
  const [isRotating, setRotating] = useState(false);
  const query = useQuery(`container tokens ${id}`, async () => {
    return (await api.get('/server-containers/{id}/loader-tokens', { params: { path: { id } } })).data;
  });
  const rotate = (dryRun: boolean) =>
    api.post('/server-containers/{id}/loader-tokens/rotate', {
      params: { path: { id }, query: { dryRun: dryRun ? '1' : '0' } },
      body: {},
    });
  return (
    <Section
      id="keys"
      title="Tokens and configuration"
      aside={
        mayAct(clientId) && (
          <button type="button" onClick={() => setRotating(true)}>
            New loader token
          </button>
        )
      }
    >
      <Known query={query} rows={1}>
        {({ items }) => (
          <ul class="rows">
            {items.map(({ id: token, value, current, until }) => (
              <li key={token}>
                <code class="grow">{value}</code>
                {until !== null && <span class="dim small">accepted until {until}</span>}
                <StateMark
                  of={current ? 'current' : 'replaced'}
                  title={current ? 'Snippets have it' : 'Accepted for old pages'}
                />
                {!current && mayAct(clientId) && <Revoke id={id} token={token} value={value} />}
              </li>
            ))}
          </ul>
        )}
      </Known>
      <p class="small">
        Service account of Google Cloud:{' '}
        {serviceAccount === null ? (
          <span class="dim">none</span>
        ) : (
          <>
            <code>{serviceAccount.clientEmail}</code>{' '}
            <span class="dim">key {serviceAccount.keyId.slice(0, 8)}…</span>
          </>
        )}
      </p>
      {mayEdit(clientId) && <NewConfig id={id} />}
      {isRotating && (
        <Confirm
          title="Make a new loader token?"
          verb="Make it"
          close={() => setRotating(false)}
          plan={async () => (await rotate(true)).data}
          act={async () => {
            await rotate(false);
            refresh(id);
          }}
        >
          <p>The snippet gets the new token. Pages with the old one work for 30 more days.</p>
        </Confirm>
      )}
    </Section>
  );
}

function Revoke({ id, token, value }: { id: string; token: string; value: string }) {
  const { isBusy, error, run } = useAction();
  return (
    <>
      <button
        type="button"
        class="danger"
        disabled={isBusy}
        aria-label={`Revoke ${value}`}
        onClick={() =>
          void run(async () => {
            await api.delete('/server-containers/{id}/loader-tokens/{token}', {
              params: { path: { id, token } },
            });
            refresh(id);
          })
        }
      >
        Revoke
      </button>
      {error !== null && <Failure error={error} />}
    </>
  );
}

function NewConfig({ id }: { id: string }) {
  const [text, setText] = useState('');
  const { isBusy, error, run } = useAction();
  const config = decodeConfig(text);
  const replace = async () => {
    await api.put('/server-containers/{id}/config', {
      params: { path: { id } },
      body: { containerConfigB64: text.trim() },
    });
    setText('');
    refresh(id);
  };
  return (
    <details>
      <summary>Replace the container configuration</summary>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void run(replace);
        }}
      >
        <AreaField
          label="Container configuration"
          hint="From Tag Manager: Admin, Container settings, Manually provision tagging server"
          value={text}
          set={setText}
          required
        />
        {text !== '' && (
          <p class={config === null ? 'bad-text' : ''}>
            {config === null
              ? 'This is no container configuration.'
              : `${config.id}, environment ${config.env}`}
          </p>
        )}
        {error !== null && <Failure error={error} />}
        <div class="actions">
          <button type="submit" class="primary" disabled={config === null || isBusy}>
            Replace
          </button>
        </div>
      </form>
    </details>
  );
}
