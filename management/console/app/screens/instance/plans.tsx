import { useState } from 'preact/hooks';
import type { components } from '../../../../../base/client/index.ts';
import { api } from '../../data/api.ts';
import { useAction } from '../../parts/action.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { TextField } from '../../parts/fields.tsx';
import { Ago } from '../../parts/marks.tsx';
import { Page, Section } from '../../parts/page.tsx';
import { Empty, Failure } from '../../parts/states.tsx';
import { plural, words } from '../../text/format.ts';
import { PlannedTable } from './planned.tsx';

type Plan = components['schemas']['InstancePlan'];

/** What the next pass, or a branch, would change. A plan held by guards is approved here. */
export default function PlansScreen() {
  const [ref, setRef] = useState('');
  const [plan, setPlan] = useState<Plan | null>(null);
  const [isApproving, setApproving] = useState(false);
  const { isBusy, error, run } = useAction();
  const make = async () => {
    const { data } = await api.post('/plans', { body: ref.trim() === '' ? {} : { ref: ref.trim() } });
    setPlan(data as Plan); // not a dry run
  };
  return (
    <Page title="Plans" sub="What applying a revision would change, before it is applied">
      <form
        class="form-row"
        onSubmit={(event) => {
          event.preventDefault();
          void run(make);
        }}
      >
        <TextField
          label="Branch or commit"
          hint="Empty: the newest revision, whose plan can be approved"
          value={ref}
          set={setRef}
        />
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? 'Planning…' : 'Plan'}
        </button>
      </form>
      {error !== null && <Failure error={error} />}
      {plan === null ? (
        <Empty title="No plan yet">
          <p>A plan observes the host and compares it with git. It changes nothing.</p>
        </Empty>
      ) : (
        <Section
          id="plan"
          title={plural(plan.changes.length, 'change')}
          aside={
            <>
              <span class="dim small">
                <code>{plan.checksum.slice(0, 12)}</code> made <Ago at={plan.createdAt} />
              </span>
              {plan.ref === null && plan.guarded > 0 && plan.approvedAt === null && (
                <button type="button" class="primary" onClick={() => setApproving(true)}>
                  Approve
                </button>
              )}
            </>
          }
        >
          {plan.blocked.map(({ reason, detail }) => (
            <p key={reason + detail} class="notice warn">
              <span class="strong">{words(reason)}</span> {detail}
            </p>
          ))}
          {plan.changes.length === 0 ? (
            <p class="calm">Nothing to do: everything is as this revision describes it.</p>
          ) : (
            <PlannedTable items={plan.changes} />
          )}
        </Section>
      )}
      {isApproving && plan !== null && (
        <Confirm
          title="Approve this plan?"
          verb="Approve"
          close={() => setApproving(false)}
          act={async () => {
            await api.post('/plans/{checksum}/approve', { params: { path: { checksum: plan.checksum } } });
            await make();
          }}
        >
          <p>
            The guards let exactly the {plural(plan.guarded, 'change')} pass that they hold. If they must hold
            anything else by then, they hold all of it again.
          </p>
        </Confirm>
      )}
    </Page>
  );
}
