import type { components } from '../../../../../base/client/index.ts';
import { shownHost, shownHostsIn } from '../../../../../base/host-name.ts';
import { api } from '../../data/api.ts';
import type { Container } from '../../data/containers.ts';
import { refresh, useQuery } from '../../data/query.ts';
import { mayAct } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { Ago, StateMark } from '../../parts/marks.tsx';
import { Section } from '../../parts/page.tsx';
import { Empty, Failure, Known } from '../../parts/states.tsx';
import { plural, words } from '../../text/format.ts';

type Verification = components['schemas']['Verification'];

/** What was checked from outside and on the host, with the fix of each failure. */
export function VerificationSection({ container }: { container: Container }) {
  const { id, clientId, status } = container;
  const query = useQuery(`container verifications ${id}`, async () => {
    return (await api.get('/server-containers/{id}/verifications', { params: { path: { id } } })).data;
  });
  const isLive = ['active', 'verified', 'verification_failed'].includes(status);
  return (
    <Section
      id="verification"
      title="Verification"
      aside={mayAct(clientId) && isLive && <VerifyButton id={id} />}
    >
      <FirstVisit container={container} />
      <Known query={query} rows={3}>
        {({ verifications: [newest, ...older] }) =>
          newest === undefined ? (
            <Empty title="Not verified yet">
              <p>
                A verification checks names, certificates, loader, cookies and more from outside. It doesn’t
                read the pages.
              </p>
            </Empty>
          ) : (
            <>
              <Report verification={newest} isOpen />
              {older.length > 0 && (
                <details>
                  <summary>{plural(older.length, 'earlier verification')}</summary>
                  {older.map((one) => (
                    <Report key={one.checkedAt} verification={one} />
                  ))}
                </details>
              )}
            </>
          )
        }
      </Known>
    </Section>
  );
}

/** Whether any page has got its tags from here: no check of the infrastructure shows that. */
export function FirstVisit({ container: { firstVisitAt } }: { container: Container }) {
  if (firstVisitAt === null) {
    return (
      <p>
        <StateMark of="no_visit_yet" /> No visit has been counted yet. Put the snippet into the pages, and
        open one of them.
      </p>
    );
  }
  return (
    <p>
      <StateMark of="first_visit_seen" /> <Ago at={firstVisitAt} />
    </p>
  );
}

/** Verifies a container now, and shows why it couldn't. */
export function VerifyButton({ id, isFirst = false }: { id: string; isFirst?: boolean }) {
  const { isBusy, error, run } = useAction();
  return (
    <>
      <button
        type="button"
        class={isFirst ? 'primary' : undefined}
        disabled={isBusy}
        onClick={() =>
          void run(async () => {
            await api.post('/server-containers/{id}/verify', { params: { path: { id } } });
            refresh(id, 'containers');
          })
        }
      >
        {isBusy ? 'Verifying…' : 'Verify now'}
      </button>
      {error !== null && <Failure error={error} />}
    </>
  );
}

export function Report({ verification, isOpen = false }: { verification: Verification; isOpen?: boolean }) {
  const { status, checkedAt, checks } = verification;
  const failed = checks.filter((check) => check.status === 'failed');
  const others = checks.filter((check) => check.status !== 'failed');
  return (
    <div class="stack">
      <p>
        <StateMark of={status === 'passed' ? 'infrastructure_checked' : status} /> <Ago at={checkedAt} />{' '}
        <span class="dim">
          {plural(checks.filter((check) => check.status === 'passed').length, 'check')} passed,{' '}
          {failed.length} failed
        </span>
      </p>
      {failed.length > 0 && (
        <ul class="rows">
          {failed.map(({ name, subject, detail, fix }) => (
            <li key={`${name} ${subject}`} class="tall">
              <StateMark of="failed" />
              <div class="grow">
                <span class="strong">{words(name)}</span>{' '}
                {subject !== null && <code>{shownHost(subject)}</code>}
                <p class="small">{shownHostsIn(detail)}</p>
                {fix !== null && <p class="small strong">{shownHostsIn(fix)}</p>}
              </div>
            </li>
          ))}
        </ul>
      )}
      {isOpen && (
        <details>
          <summary>{failed.length === 0 ? 'All checks' : plural(others.length, 'other check')}</summary>
          <ul class="rows">
            {others.map(({ name, subject, status: state, detail }) => (
              <li key={`${name} ${subject}`}>
                <StateMark of={state} />
                <div class="grow small">
                  <span class="strong">{words(name)}</span>{' '}
                  {subject !== null && <code>{shownHost(subject)}</code>}{' '}
                  <span class="dim">{shownHostsIn(detail)}</span>
                </div>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}
