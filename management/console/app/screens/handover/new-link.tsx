import { useState } from 'preact/hooks';
import { api } from '../../data/api.ts';
import { refresh } from '../../data/query.ts';
import { useAction } from '../../parts/action.tsx';
import { ChoiceField, TextField } from '../../parts/fields.tsx';
import { Code } from '../../parts/marks.tsx';
import { Failure } from '../../parts/states.tsx';

const DAY_MS = 86_400_000;
const ENDS = [
  { value: '7', name: 'in 7 days' },
  { value: '30', name: 'in 30 days' },
  { value: '90', name: 'in 90 days' },
] as const;
const SCOPES = [
  { value: 'one', name: 'This container' },
  { value: 'all', name: 'All containers of the client' },
] as const;

/** Makes a link. Its address is shown once: the API keeps no secret. */
export function NewLink({
  client,
  container,
  sendsMail,
}: {
  client: string;
  container?: string | undefined;
  sendsMail: boolean;
}) {
  const [scope, setScope] = useState<(typeof SCOPES)[number]['value']>('one');
  const [recipients, setRecipients] = useState('');
  const [days, setDays] = useState<(typeof ENDS)[number]['value']>('30');
  const [made, setMade] = useState<string | null>(null);
  const { isBusy, error, run } = useAction();
  const create = async () => {
    const { data } = await api.post('/clients/{id}/handover-links', {
      params: { path: { id: client } },
      body: {
        recipients: recipients.split(/[\s,;]+/).filter((one) => one !== ''),
        // A minute less, so that the API accepts the longest time even if this browser’s clock is ahead.
        expiresAt: new Date(Date.now() + Number(days) * DAY_MS - 60_000).toISOString(),
        ...(container !== undefined && scope === 'one' ? { container } : {}),
      },
    });
    // Without PUBLIC_URL the API names the path only; this page’s origin serves it.
    setMade(new URL(data.url, location.origin).href);
    setRecipients('');
    refresh(`handover ${client}`);
  };
  return (
    <>
      {made !== null && (
        <div class="notice good">
          <p>Send this address to the person who sets the records. It is shown only now.</p>
          <Code text={made} what="address of the link" />
          <p>
            <a href={made} target="_blank" rel="noopener noreferrer">
              Open the page
            </a>
          </p>
        </div>
      )}
      <form
        class="form-row"
        onSubmit={(event) => {
          event.preventDefault();
          void run(create);
        }}
      >
        {container !== undefined && (
          <ChoiceField label="Records of" value={scope} of={SCOPES} set={setScope} />
        )}
        {sendsMail && (
          <TextField
            label="Mail when all records are right"
            value={recipients}
            set={setRecipients}
            placeholder="dns@acme.example, …"
          />
        )}
        <ChoiceField label="Ends" value={days} of={ENDS} set={setDays} />
        <button type="submit" disabled={isBusy}>
          {isBusy ? 'Working…' : 'Make a link'}
        </button>
      </form>
      {error !== null && <Failure error={error} />}
    </>
  );
}
