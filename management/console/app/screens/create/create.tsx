import { useEffect, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { api } from '../../data/api.ts';
import { refresh } from '../../data/query.ts';
import { mayAct, me } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { AreaField, ChoiceField, TextField } from '../../parts/fields.tsx';
import { Page, Section } from '../../parts/page.tsx';
import { Empty, Failure } from '../../parts/states.tsx';
import { decodeConfig } from '../../text/container-config.ts';
import {
  type Creation,
  creationRequest,
  forgetCreation,
  isComplete,
  keepCreation,
  keptCreation,
} from './form.ts';

/** A new container: what Tag Manager shows, a name, the domains. */
export default function CreateScreen() {
  const clients = me().clients.filter(({ id }) => mayAct(id));
  const { route } = useLocation();
  const [creation, setCreation] = useState(() => keptCreation(clients[0]?.id ?? ''));
  const [key] = useState(() => crypto.randomUUID());
  const { isBusy, error, run } = useAction();
  const set = (changes: Partial<Creation>) => setCreation({ ...creation, ...changes });
  useEffect(() => keepCreation(creation), [creation]);
  const { clientId, name, config, pages } = creation;
  const decoded = decodeConfig(config);

  if (clients.length === 0) {
    return (
      <Page title="New container">
        <Empty title="You can’t create containers">
          <p>Only owners and admins of a client can. Ask one of them.</p>
          <a class="button" href="/console/containers">
            Back to the containers
          </a>
        </Empty>
      </Page>
    );
  }

  const create = async () => {
    const { data } = await api.post('/server-containers', {
      params: { header: { 'idempotency-key': key } },
      body: creationRequest(creation),
    });
    forgetCreation();
    refresh('containers');
    route(`/console/containers/${data.id}/setup`);
  };
  const setPage = (index: number, changes: Partial<(typeof pages)[number]>) =>
    set({ pages: pages.map((page, at) => (at === index ? { ...page, ...changes } : page)) });

  return (
    <Page title="New container">
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void run(create);
        }}
      >
        <Section id="config" title="1 · What Tag Manager shows">
          <AreaField
            label="Container configuration"
            hint="In Tag Manager open your server container: Admin, Container settings, Manually provision tagging server. Paste the text."
            value={config}
            set={(text) => set({ config: text })}
            required
            rows={2}
          />
          {config.trim() !== '' &&
            (decoded === null ? (
              <p class="bad-text" role="alert">
                This is not a container configuration. Copy the whole text; it begins with aWQ.
              </p>
            ) : (
              <dl class="facts" aria-label="Decoded configuration">
                <dt>Container</dt>
                <dd>
                  <code>{decoded.id}</code>
                </dd>
                <dt>Environment</dt>
                <dd>{decoded.env}</dd>
                <dt>Auth</dt>
                <dd>{decoded.hasAuth ? '•••••••• (encrypted for the host)' : 'missing'}</dd>
              </dl>
            ))}
        </Section>
        <Section id="names" title="2 · Name and domains">
          <div class="grid">
            <TextField
              label="Name"
              hint="What people call it, such as Acme Shop"
              value={name}
              set={(text) => set({ name: text })}
              required
              maxLength={100}
            />
            {clients.length > 1 && (
              <ChoiceField
                label="Client"
                hint="To whom it belongs"
                value={clientId}
                of={clients.map((client) => ({ value: client.id, name: client.name }))}
                set={(id) => set({ clientId: id })}
              />
            )}
          </div>
          {pages.map(({ domain, webTagId }, index) => (
            <div key={index} class="form-row">
              <TextField
                label={index === 0 ? 'Domain' : `Domain ${index + 1}`}
                value={domain}
                set={(text) => setPage(index, { domain: text })}
                required
                placeholder="shop.example"
              />
              <TextField
                label={index === 0 ? 'Web tag id' : `Web tag id ${index + 1}`}
                value={webTagId}
                set={(text) => setPage(index, { webTagId: text })}
                required
                placeholder="GTM-ABC1234"
              />
              {pages.length > 1 && (
                <button
                  type="button"
                  aria-label={`Remove domain ${index + 1}`}
                  onClick={() => set({ pages: pages.filter((_page, at) => at !== index) })}
                >
                  Remove
                </button>
              )}
            </div>
          ))}
          <button type="button" onClick={() => set({ pages: [...pages, { domain: '', webTagId: '' }] })}>
            Another domain
          </button>
        </Section>
        {error !== null && <Failure error={error} />}
        <div class="actions">
          <button type="submit" class="primary" disabled={isBusy || !isComplete(creation)}>
            {isBusy ? 'Creating…' : 'Create the container'}
          </button>
          <a class="button" href="/console/containers">
            Cancel
          </a>
        </div>
      </form>
    </Page>
  );
}
