import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { api } from '../../data/api.ts';
import type { Versioned } from '../../data/containers.ts';
import { refresh } from '../../data/query.ts';
import { mayAct } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { Confirm, type OfVersion } from '../../parts/confirm.tsx';
import { Section } from '../../parts/page.tsx';
import { Failure } from '../../parts/states.tsx';
import { ResumeButton } from './resume.tsx';

/** Suspends, protects, removes or restores a container. */
export function DangerSection({ versioned }: { versioned: Versioned }) {
  const { id, clientId, name, status, suspended, serving, protected: isProtected } = versioned.container;
  const [isRemoving, setRemoving] = useState(false);
  const { isBusy, error, run } = useAction();
  if (!mayAct(clientId)) return null;
  const params = { path: { id } };
  const done = () => refresh(id, 'containers');
  const isGone = ['removed', 'deprovisioning'].includes(status);
  const remove = (dryRun: boolean, header: OfVersion) =>
    api.delete('/server-containers/{id}', {
      params: { ...params, header, query: dryRun ? { dryRun: '1' } : {} },
    });
  return (
    <Section id="danger" title="Danger zone">
      <ul class="rows">
        {isGone ? (
          <Row title="Restore the container" text="It gets its names, settings and configuration back.">
            <button
              type="button"
              class="primary"
              disabled={isBusy || status !== 'removed'}
              onClick={() =>
                void run(async () => {
                  await api.post('/server-containers/{id}/restore', { params });
                  done();
                })
              }
            >
              Restore
            </button>
          </Row>
        ) : (
          <>
            {suspended || !serving ? (
              <Row
                title="Resume"
                text="Applies the changes that wait, and all later ones; the edge serves the site."
              >
                <ResumeButton container={versioned.container} />
              </Row>
            ) : (
              <Row title="Suspend" text="Changes wait; the site keeps serving as it is.">
                <button
                  type="button"
                  disabled={isBusy}
                  onClick={() =>
                    void run(async () => {
                      await api.post('/server-containers/{id}/suspend', { params, body: {} });
                      done();
                    })
                  }
                >
                  Suspend
                </button>
              </Row>
            )}
            <Row
              title={isProtected ? 'End the protection' : 'Protect from removal'}
              text={
                isProtected
                  ? 'Then it can be removed.'
                  : 'Then it can’t be removed until the protection ends.'
              }
            >
              <button
                type="button"
                disabled={isBusy}
                onClick={() =>
                  void run(async () => {
                    await api.post('/server-containers/{id}/protect', {
                      params,
                      body: { protect: !isProtected },
                    });
                    done();
                  })
                }
              >
                {isProtected ? 'End protection' : 'Protect'}
              </button>
            </Row>
            <Row
              title="Remove the container"
              text="Stops it, and removes its hostnames and records. It can be restored afterwards."
            >
              <button type="button" class="danger" disabled={isProtected} onClick={() => setRemoving(true)}>
                Remove…
              </button>
            </Row>
          </>
        )}
      </ul>
      {error !== null && <Failure error={error} />}
      {isRemoving && (
        <Confirm
          title={`Remove ${name}?`}
          verb="Remove the container"
          typed={name}
          isDanger
          versioned={versioned}
          close={() => setRemoving(false)}
          plan={async (header) => (await remove(true, header)).data}
          act={async (header) => {
            await remove(false, header);
            done();
          }}
        >
          <p>
            Pages with its snippet then load their tags directly from Google, if the fallback allows that.
          </p>
        </Confirm>
      )}
    </Section>
  );
}

function Row({ title, text, children }: { title: string; text: string; children: ComponentChildren }) {
  return (
    <li>
      <div class="grow">
        <span class="strong">{title}</span>
        <div class="small dim">{text}</div>
      </div>
      {children}
    </li>
  );
}
