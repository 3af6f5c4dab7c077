import { useState } from 'preact/hooks';
import type { components } from '../../../../../base/client/index.ts';
import { api } from '../../data/api.ts';
import { refresh, useQuery } from '../../data/query.ts';
import { clientName, mayAct, me } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { ChoiceField, TextField } from '../../parts/fields.tsx';
import { Ago, Code, StateMark } from '../../parts/marks.tsx';
import { Page, Section } from '../../parts/page.tsx';
import { Empty, Failure, Known } from '../../parts/states.tsx';
import { Deliveries } from './deliveries.tsx';

type Webhook = components['schemas']['Webhook'];

/** Addresses that events are sent to, and the deliveries to them. */
export default function WebhooksScreen() {
  const query = useQuery('webhooks', async () => (await api.get('/webhooks')).data);
  return (
    <Page title="Webhooks" sub="Signed messages to your own systems (Standard Webhooks)">
      <Known query={query} rows={4}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No webhook yet">
              <p>A webhook reports events of containers, such as a new status or a refused manifest.</p>
            </Empty>
          ) : (
            items.map((one) => <WebhookCard key={one.id} webhook={one} />)
          )
        }
      </Known>
      <NewWebhook />
    </Page>
  );
}

function WebhookCard({ webhook }: { webhook: Webhook }) {
  const { id, url, client, enabled, events, pausedUntil, notice } = webhook;
  const { isBusy, error, run } = useAction();
  const params = { path: { id } };
  const change = async (work: () => Promise<unknown>) => {
    await work();
    refresh('webhooks', `deliveries ${id}`);
  };
  return (
    <Section
      id={`webhook-${id}`}
      title={url}
      aside={
        <>
          <StateMark of={!enabled ? 'disabled' : pausedUntil === null ? 'enabled' : 'paused'} />
          <button
            type="button"
            disabled={isBusy}
            onClick={() => void run(() => change(() => api.post('/webhooks/{id}/test', { params })))}
          >
            Send a test
          </button>
          <button
            type="button"
            disabled={isBusy}
            onClick={() =>
              void run(() =>
                change(() => api.patch('/webhooks/{id}', { params, body: { enabled: !enabled } })),
              )
            }
          >
            {enabled ? 'Switch off' : 'Switch on'}
          </button>
          <button
            type="button"
            class="danger"
            disabled={isBusy}
            aria-label={`Delete ${url}`}
            onClick={() => void run(() => change(() => api.delete('/webhooks/{id}', { params })))}
          >
            Delete
          </button>
        </>
      }
    >
      <p class="small dim">
        {client === null ? 'organisation' : clientName(client)} · {events.join(', ')}
      </p>
      {notice !== null && (
        <p class="notice warn">
          {notice.text} (<Ago at={notice.at} />)
        </p>
      )}
      {error !== null && <Failure error={error} />}
      <Deliveries id={id} />
    </Section>
  );
}

function NewWebhook() {
  const clients = me().clients.filter(({ id }) => mayAct(id));
  const [url, setUrl] = useState('');
  const [client, setClient] = useState(clients[0]?.id ?? '');
  const [secret, setSecret] = useState<string | null>(null);
  const { isBusy, error, run } = useAction();
  if (clients.length === 0) return null;
  const create = async () => {
    const { data } = await api.post('/webhooks', { body: { client, url: url.trim() } });
    setSecret(data.secret);
    setUrl('');
    refresh('webhooks');
  };
  return (
    <Section id="new-webhook" title="New webhook">
      {secret !== null && (
        <div class="notice good">
          <p>The secret that verifies the signatures. It is shown only now.</p>
          <Code text={secret} what="secret" />
        </div>
      )}
      <form
        class="form-row"
        onSubmit={(event) => {
          event.preventDefault();
          void run(create);
        }}
      >
        <TextField
          label="Address"
          type="url"
          value={url}
          set={setUrl}
          required
          placeholder="https://hooks.example/tagyard"
        />
        <ChoiceField
          label="Client"
          value={client}
          of={clients.map((one) => ({ value: one.id, name: one.name }))}
          set={setClient}
        />
        <button type="submit" class="primary" disabled={isBusy}>
          Create
        </button>
      </form>
      {error !== null && <Failure error={error} />}
    </Section>
  );
}
