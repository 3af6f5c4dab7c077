import { useState } from 'preact/hooks';
import { api } from '../../../data/api.ts';
import type { Versioned } from '../../../data/containers.ts';
import { refresh } from '../../../data/query.ts';
import { mayEdit } from '../../../data/session.ts';
import { Confirm, type OfVersion } from '../../../parts/confirm.tsx';
import { AreaField } from '../../../parts/fields.tsx';
import { decodeConfig } from '../../../text/container-config.ts';

/** Replaces the container configuration, for example after its auth was rotated in Tag Manager. */
export function ConfigForm({ versioned }: { versioned: Versioned }) {
  const { id, clientId } = versioned.container;
  const [text, setText] = useState('');
  const [isReviewing, setReviewing] = useState(false);
  const config = decodeConfig(text);
  if (!mayEdit(clientId)) return null;
  const replace = (dryRun: boolean, header: OfVersion) =>
    api.put('/server-containers/{id}/config', {
      params: { path: { id }, header, query: { dryRun: dryRun ? '1' : '0' } },
      body: { containerConfigB64: text.trim() },
    });
  return (
    <details class="part">
      <summary>Replace the container configuration</summary>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          setReviewing(true);
        }}
      >
        <AreaField
          label="Container configuration"
          hint="From Tag Manager: Admin, Container settings, Manually provision tagging server"
          value={text}
          set={setText}
          required
        />
        {text !== '' &&
          (config === null ? (
            <p class="bad-text" role="alert">
              This is not a container configuration. Copy the whole text; it begins with aWQ.
            </p>
          ) : (
            <p>
              <code>{config.id}</code>, environment {config.env},{' '}
              {config.hasAuth ? 'auth •••••••• (encrypted for the host)' : 'auth is missing'}
            </p>
          ))}
        <div class="actions">
          <button type="submit" class="primary" disabled={config === null}>
            Review the configuration
          </button>
        </div>
      </form>
      {isReviewing && (
        <Confirm
          title="Replace the container configuration?"
          verb="Replace"
          versioned={versioned}
          close={() => setReviewing(false)}
          plan={async (header) => (await replace(true, header)).data}
          act={async (header) => {
            await replace(false, header);
            setText('');
            refresh(id);
          }}
        >
          <p>The containers are replaced one by one, so the site keeps serving.</p>
        </Confirm>
      )}
    </details>
  );
}
