import { useState } from 'preact/hooks';
import { shownHost } from '../../../../../../base/host-name.ts';
import { api } from '../../../data/api.ts';
import type { Container, Versioned } from '../../../data/containers.ts';
import { refresh } from '../../../data/query.ts';
import { Confirm, type OfVersion } from '../../../parts/confirm.tsx';
import { CheckField, TextField } from '../../../parts/fields.tsx';

type Domain = Container['domains'][number];

const PATH = '/[a-z0-9]{6,12}';

/** A new domain (`null`), or the tag id and the same-origin path of a known one. The plan is shown before it is saved. */
export function DomainForm({
  versioned,
  domain,
  close,
}: {
  versioned: Versioned;
  domain: Domain | null;
  close: () => void;
}) {
  const { id } = versioned.container;
  // Saving sends the version that this form was opened with, so a change that another person has made since is detected.
  const [base] = useState(versioned);
  const [name, setName] = useState(domain?.domain ?? '');
  const [webTagId, setTag] = useState(domain?.webTagId ?? '');
  const [hasPath, setHasPath] = useState(domain !== null && domain.sameOrigin !== null);
  const [path, setPath] = useState(domain?.sameOrigin?.path ?? '');
  const [isReviewing, setReviewing] = useState(false);
  const had = domain?.sameOrigin ?? null;
  const sameOrigin = !hasPath ? null : path === '' ? {} : { path };
  const isPathChanged = hasPath ? had === null || had.path !== path : had !== null;
  const send = (dryRun: boolean, header: OfVersion) =>
    api.post('/server-containers/{id}/domains', {
      params: { path: { id }, header, query: dryRun ? { dryRun: '1' } : {} },
      body: {
        domain: name.trim(),
        webTagId: webTagId.trim(),
        ...(isPathChanged ? { sameOrigin } : {}),
      },
    });
  return (
    <>
      <form
        class="form inset"
        aria-label={domain === null ? 'New domain' : `Settings of ${shownHost(domain.domain)}`}
        onSubmit={(event) => {
          event.preventDefault();
          setReviewing(true);
        }}
      >
        <div class="grid">
          {domain === null && (
            <TextField
              label="Domain"
              hint="Of the pages that get the snippet"
              value={name}
              set={setName}
              required
              placeholder="shop.example"
            />
          )}
          <TextField
            label="Web tag id"
            hint="Of Google’s web container"
            value={webTagId}
            set={setTag}
            required
            placeholder="GTM-ABC1234"
          />
        </div>
        <CheckField
          label="Same origin"
          hint="The domain’s own server forwards a path of its pages to the edge, so cookies last as long as the tags say"
          value={hasPath}
          set={setHasPath}
        />
        {hasPath && (
          <TextField
            label="Path"
            hint="/ and 6 to 12 characters of a–z and 0–9. If empty: the present path, or a generated one"
            value={path}
            set={setPath}
            pattern={PATH}
            placeholder="/m3trics1"
          />
        )}
        <div class="actions">
          <button type="submit" class="primary">
            {domain === null ? 'Review the domain' : 'Review changes'}
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
      {isReviewing && (
        <Confirm
          title={domain === null ? `Add ${name.trim()}?` : `Change ${shownHost(domain.domain)}?`}
          verb={domain === null ? 'Add' : 'Save'}
          versioned={base}
          close={() => setReviewing(false)}
          plan={async (header) => (await send(true, header)).data}
          act={async (header) => {
            await send(false, header);
            refresh(id);
            close();
          }}
        />
      )}
    </>
  );
}
