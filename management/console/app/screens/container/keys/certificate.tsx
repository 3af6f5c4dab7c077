import { useState } from 'preact/hooks';
import { api } from '../../../data/api.ts';
import type { Versioned } from '../../../data/containers.ts';
import { refresh } from '../../../data/query.ts';
import { mayAct } from '../../../data/session.ts';
import { Confirm, type OfVersion } from '../../../parts/confirm.tsx';
import { FileButton } from '../../../parts/file-button.tsx';

interface Pair {
  readonly certificate: string;
  readonly privateKey: string;
}

/** The API takes 16,384 characters of certificates and 8,192 of a key. */
const MOST_BYTES = 32_768;

/** A certificate with its key that replaces the usual source for the names that it covers. */
export function UploadedCertificate({ versioned }: { versioned: Versioned }) {
  const { id, clientId, tls } = versioned.container;
  const [chosen, choose] = useState<Pair | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const read = async (files: readonly File[]) => {
    const pair = await pairFrom(files);
    setProblem(
      pair === null ? 'Choose the certificate with its chain and the private key, both in PEM.' : null,
    );
    choose(pair);
  };
  return (
    <div class="stack part">
      <div class="part-head">
        <h3>Certificate of your own</h3>
        {mayAct(clientId) && (
          <div class="actions">
            <FileButton
              name={tls === 'uploaded' ? 'Replace the certificate…' : 'Upload a certificate…'}
              label="Certificate and private key in PEM"
              accept=".pem,.crt,.cer,.key"
              multiple
              read={read}
            />
          </div>
        )}
      </div>
      <p class="dim">
        {tls === 'uploaded'
          ? 'The uploaded certificate serves the names that it covers. To remove it, choose another source in the settings.'
          : 'None. With one, a custom domain has its certificate before its DNS leads here.'}
      </p>
      {problem !== null && (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
      {chosen !== null && (
        <Confirm
          title="Use this certificate?"
          verb="Save"
          versioned={versioned}
          close={() => choose(null)}
          plan={async (header) => (await put(id, chosen, header, true)).data}
          act={async (header) => {
            await put(id, chosen, header, false);
            refresh(id);
          }}
        >
          <p>The private key is encrypted for the host and never shown again.</p>
        </Confirm>
      )}
    </div>
  );
}

function put(id: string, body: Pair, header: OfVersion, dryRun: boolean) {
  return api.put('/server-containers/{id}/certificate', {
    params: { path: { id }, header, query: { dryRun: dryRun ? '1' : '0' } },
    body,
  });
}

/** The pair in one file or two; `null`: a half is missing. The API judges it. */
async function pairFrom(files: readonly File[]): Promise<Pair | null> {
  if (files.some(({ size }) => size > MOST_BYTES)) return null;
  const text = (await Promise.all(files.map((file) => file.text()))).join('\n').replaceAll('\r', '');
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const [privateKey] =
    text.match(/-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]+-----END [A-Z ]*PRIVATE KEY-----/) ?? [];
  if (certificates.length === 0 || privateKey === undefined) return null;
  return { certificate: `${certificates.join('\n')}\n`, privateKey: `${privateKey}\n` };
}
