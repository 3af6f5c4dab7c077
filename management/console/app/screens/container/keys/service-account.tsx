import { useState } from 'preact/hooks';
import { api } from '../../../data/api.ts';
import type { Versioned } from '../../../data/containers.ts';
import { refresh } from '../../../data/query.ts';
import { mayAct } from '../../../data/session.ts';
import { Confirm, type OfVersion } from '../../../parts/confirm.tsx';
import { FileButton } from '../../../parts/file-button.tsx';

type Key = Record<string, unknown>;

/** Keys of Google have 2,400 bytes; the API takes 8,192. */
const MOST_BYTES = 8_192;

/** The Google Cloud service account with which the tag server uses, for example, Firestore or BigQuery. */
export function ServiceAccount({ versioned }: { versioned: Versioned }) {
  const { id, clientId, serviceAccount } = versioned.container;
  const [chosen, choose] = useState<{ readonly name: string; readonly key: Key } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isRemoving, setRemoving] = useState(false);
  const read = async ([given]: readonly File[]) => {
    setProblem(null);
    if (given === undefined) return;
    const result = await keyFrom(given);
    if (typeof result === 'string') setProblem(result);
    else choose({ name: given.name, key: result });
  };
  const put = (key: Key, dryRun: boolean, header: OfVersion) =>
    api.put('/server-containers/{id}/service-account', {
      params: { path: { id }, header, query: { dryRun: dryRun ? '1' : '0' } },
      body: key,
    });
  const remove = (dryRun: boolean, header: OfVersion) =>
    api.delete('/server-containers/{id}/service-account', {
      params: { path: { id }, header, query: { dryRun: dryRun ? '1' : '0' } },
    });
  return (
    <div class="stack part">
      <div class="part-head">
        <h3>Service account of Google Cloud</h3>
        {mayAct(clientId) && (
          <div class="actions">
            {serviceAccount !== null && (
              <button type="button" onClick={() => setRemoving(true)}>
                Remove the account
              </button>
            )}
            <FileButton
              name={serviceAccount === null ? 'Upload a key…' : 'Replace the key…'}
              label="JSON key of the service account"
              accept="application/json,.json"
              read={read}
            />
          </div>
        )}
      </div>
      {serviceAccount === null ? (
        <p class="dim">
          None. Tags that write to Google Cloud need one: create a key in JSON under IAM, Service accounts,
          Keys.
        </p>
      ) : (
        <dl class="facts">
          <dt>Account</dt>
          <dd>{serviceAccount.clientEmail}</dd>
          <dt>Project</dt>
          <dd>{serviceAccount.projectId}</dd>
          <dt>Key</dt>
          <dd>
            <code>{serviceAccount.keyId}</code> <span class="dim small">encrypted for the host</span>
          </dd>
        </dl>
      )}
      {problem !== null && (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
      {chosen !== null && (
        <Confirm
          title={serviceAccount === null ? 'Use this service account?' : 'Replace the service account?'}
          verb="Save"
          versioned={versioned}
          close={() => choose(null)}
          plan={async (header) => (await put(chosen.key, true, header)).data}
          act={async (header) => {
            await put(chosen.key, false, header);
            refresh(id);
          }}
        >
          <p>
            From <code>{chosen.name}</code>. The private key is encrypted for the host and never shown again.
          </p>
        </Confirm>
      )}
      {isRemoving && (
        <Confirm
          title="Remove the service account?"
          verb="Remove"
          isDanger
          versioned={versioned}
          close={() => setRemoving(false)}
          plan={async (header) => (await remove(true, header)).data}
          act={async (header) => {
            await remove(false, header);
            refresh(id);
          }}
        >
          <p>Tags that write to Google Cloud fail from then on.</p>
        </Confirm>
      )}
    </div>
  );
}

/** The key in a file, or why there is none in it. The API judges its members. */
async function keyFrom(file: File): Promise<Key | string> {
  if (file.size > MOST_BYTES) {
    return `${file.name} is too large: a key has about 2,400 bytes, this file ${file.size.toLocaleString('en')}.`;
  }
  try {
    const value: unknown = JSON.parse(await file.text());
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Key; // checked
  } catch {
    // Its text is not quoted: it can have a private key.
  }
  return `${file.name} is not a JSON key. Download one in Google Cloud: IAM, Service accounts, Keys, Add key, JSON.`;
}
