import { useState } from 'preact/hooks';
import { shownHost } from '../../../../../../base/host-name.ts';
import { api } from '../../../data/api.ts';
import type { Container, Versioned } from '../../../data/containers.ts';
import { refresh } from '../../../data/query.ts';
import { mayAct, mayEdit } from '../../../data/session.ts';
import { Confirm, type OfVersion } from '../../../parts/confirm.tsx';
import { GraceField, graceDate } from '../../../parts/grace.tsx';
import { Code } from '../../../parts/marks.tsx';
import { Section } from '../../../parts/page.tsx';
import { Tabs } from '../../../parts/tabs.tsx';
import { plural } from '../../../text/format.ts';

type Domain = Container['domains'][number];

const SERVERS: Readonly<Record<string, string>> = {
  nginx: 'nginx',
  apache: 'Apache',
  caddy: 'Caddy',
  haproxy: 'HAProxy',
  cloudflareWorker: 'Cloudflare Worker',
  fastly: 'Fastly',
  cloudfront: 'CloudFront',
  akamai: 'Akamai',
  vercel: 'Vercel',
  netlify: 'Netlify',
  nextjs: 'Next.js',
};
/** The longest grace that the API gives a forwarder’s token. */
const MOST_DAYS = 90;

/** The domains whose own server forwards a path to the edge: what to configure there, and its token. */
export function SameOriginSection({ versioned }: { versioned: Versioned }) {
  const { domains, clientId } = versioned.container;
  const own = domains.filter(({ sameOrigin }) => sameOrigin !== null);
  const [chosen, choose] = useState('');
  const domain = own.find((one) => one.domain === chosen) ?? own[0];
  if (domain === undefined) {
    return (
      <Section id="same-origin" title="Same origin">
        <p class="dim">
          No domain forwards a path of its own pages yet. With such a path, cookies last in every browser as
          long as the tags say.
        </p>
        {mayEdit(clientId) && (
          <p>
            Set a path under <a href="#domains">Domains</a>: Edit.
          </p>
        )}
      </Section>
    );
  }
  return (
    <Section
      id="same-origin"
      title="Same origin"
      aside={
        own.length > 1 && (
          <select
            aria-label="Domain with a same-origin path"
            value={domain.domain}
            onChange={({ currentTarget }) => choose(currentTarget.value)}
          >
            {own.map((one) => (
              <option key={one.domain} value={one.domain}>
                {shownHost(one.domain)}
              </option>
            ))}
          </select>
        )
      }
    >
      <Forwarder key={domain.domain} versioned={versioned} domain={domain} />
    </Section>
  );
}

function Forwarder({ versioned, domain }: { versioned: Versioned; domain: Domain }) {
  const { clientId } = versioned.container;
  const [isRotating, setRotating] = useState(false);
  const { path = '', snippets } = domain.sameOrigin ?? {};
  const servers = Object.entries(snippets ?? {});
  return (
    <>
      <p>
        The server of <strong>{shownHost(domain.domain)}</strong> forwards <code>{path}/</code> to the edge.
        Add this to its configuration; each tab is for one product.
      </p>
      {servers.length > 0 ? (
        <>
          <Tabs label="Kind of server" of={servers.map(([key]) => ({ key, name: SERVERS[key] ?? key }))}>
            {(key) => (
              <Code
                text={servers.find(([name]) => name === key)?.[1] ?? ''}
                what={`configuration of ${SERVERS[key] ?? key}`}
              />
            )}
          </Tabs>
          <p class="small dim">
            The token in it is like a password: a program that has it can send data in the name of any
            visitor.
          </p>
        </>
      ) : (
        <p class="notice warn">
          {mayEdit(clientId)
            ? 'The token was made with another key of this installation. An owner or admin must make a new one.'
            : 'The configuration has a secret token. Editors, admins and owners can read it.'}
        </p>
      )}
      {mayAct(clientId) && (
        <button type="button" onClick={() => setRotating(true)}>
          New token…
        </button>
      )}
      {isRotating && <Rotate versioned={versioned} domain={domain.domain} close={() => setRotating(false)} />}
    </>
  );
}

/** A new token; for a time, the edge also accepts the old one. */
function Rotate({ versioned, domain, close }: { versioned: Versioned; domain: string; close: () => void }) {
  const { id } = versioned.container;
  const [days, setDays] = useState('30');
  const rotate = (dryRun: boolean, header: OfVersion) =>
    api.post('/server-containers/{id}/domains/{domain}/forwarder-token', {
      params: { path: { id, domain }, header, query: dryRun ? { dryRun: '1' } : {} },
      body: { graceUntil: graceDate(days) },
    });
  return (
    <Confirm
      title={`Make a new token for ${shownHost(domain)}?`}
      verb="Make it"
      versioned={versioned}
      close={close}
      plan={async (header) => (await rotate(true, header)).data}
      planOf={days}
      act={async (header) => {
        await rotate(false, header);
        refresh(id);
      }}
    >
      <p>
        Then put the new token in the server’s configuration within {plural(Number(days) || 0, 'day')}. For
        that time, both tokens work.
      </p>
      <GraceField value={days} set={setDays} max={MOST_DAYS} />
    </Confirm>
  );
}
