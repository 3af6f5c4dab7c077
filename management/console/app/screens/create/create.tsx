import { useEffect, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { api } from '../../data/api.ts';
import { refresh } from '../../data/query.ts';
import { mayAct, me } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { AreaField, CERTIFICATES, ChoiceField, RadioField, TextField } from '../../parts/fields.tsx';
import { Page, Section } from '../../parts/page.tsx';
import { Empty, errorOf, Failure } from '../../parts/states.tsx';
import { decodeConfig } from '../../text/container-config.ts';
import {
  type Creation,
  creationRequest,
  forgetCreation,
  isComplete,
  isPlannable,
  keepCreation,
  keptCreation,
  typedHost,
} from './form.ts';

/** So that a dry run isn't made for each letter. */
const TYPING_MS = 600;

/** What a dry run says of the creation: the host name that it would get, and what is wrong. */
function useProposal(creation: Creation): { readonly edge: string | null; readonly error: unknown } {
  const [proposal, propose] = useState<{ readonly edge: string | null; readonly error: unknown }>({
    edge: null,
    error: null,
  });
  const body = isPlannable(creation) ? JSON.stringify(creationRequest(creation)) : null;
  useEffect(() => {
    propose({ edge: null, error: null });
    if (body === null) return;
    let isOld = false;
    const timer = setTimeout(async () => {
      try {
        const { data } = await api.post('/server-containers', {
          params: { query: { dryRun: '1' } },
          body: JSON.parse(body),
        });
        const names = data.plan.changes.find(({ path }) => path === 'hostnames')?.to;
        if (!isOld) propose({ edge: edgeIn(names), error: null });
      } catch (error) {
        if (!isOld) propose({ edge: null, error });
      }
    }, TYPING_MS);
    return () => {
      isOld = true;
      clearTimeout(timer);
    };
  }, [body]);
  return proposal;
}

function edgeIn(hostnames: unknown): string | null {
  if (typeof hostnames !== 'object' || hostnames === null || !('edge' in hostnames)) return null;
  return typeof hostnames.edge === 'string' ? hostnames.edge : null;
}

/** A new container: what Tag Manager shows, a name, the domains, consent. */
export default function CreateScreen() {
  const clients = me().clients.filter(({ id }) => mayAct(id));
  const { route } = useLocation();
  const [creation, setCreation] = useState(() => keptCreation(clients[0]?.id ?? ''));
  const [key] = useState(() => crypto.randomUUID());
  const { isBusy, error, run } = useAction();
  const set = (changes: Partial<Creation>) => setCreation({ ...creation, ...changes });
  useEffect(() => keepCreation(creation), [creation]);
  const { clientId, name, config, pages, consent, siteId, tls } = creation;
  const decoded = decodeConfig(config);
  const { edge, error: planError } = useProposal(creation);
  const errorAt = (path: string) => errorOf(error ?? planError, path);

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
      // The host name that was shown.
      body: creationRequest({ ...creation, siteId: siteId.trim() || (edge?.split('.')[0] ?? '') }),
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
            error={errorAt('containerConfigB64')}
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
              error={errorAt('name')}
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
                error={errorAt(`domains.${index}`)}
                required
                placeholder="shop.example"
              />
              <TextField
                label={index === 0 ? 'Web tag id' : `Web tag id ${index + 1}`}
                value={webTagId}
                set={(text) => setPage(index, { webTagId: text })}
                error={errorAt(`webTagIds.${typedHost(domain)}`)}
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
          <TextField
            label="Host name"
            hint={
              edge === null ? (
                'The first label of the tag server’s address, such as acme-shop: a–z, 0–9 and -. Empty: made from the name. It can’t be changed later.'
              ) : (
                <>
                  The address is <code>{edge}</code>. It can’t be changed later.
                </>
              )
            }
            value={siteId}
            set={(text) => set({ siteId: text })}
            error={errorAt('siteId')}
            placeholder={edge?.split('.')[0] ?? ''}
            maxLength={48}
          />
          <details>
            <summary class="small">Advanced</summary>
            <ChoiceField
              label="Certificates"
              hint="Those of the tag server’s and custom domains’ names"
              value={tls}
              of={[{ value: '', name: 'As the host does' }, ...CERTIFICATES]}
              set={(chosen) => set({ tls: chosen })}
            />
          </details>
        </Section>
        <Section id="consent" title="3 · Consent">
          <RadioField
            label="When are visitors identified?"
            value={consent}
            of={[
              {
                value: 'required',
                name: 'Only after a grant',
                hint: 'No tag loads before. For visitors of the EEA, the United Kingdom and Switzerland.',
              },
              { value: 'opt_out', name: 'Unless the visitor refuses', hint: 'Tags load at once.' },
            ]}
            set={(chosen) => set({ consent: chosen })}
          />
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
