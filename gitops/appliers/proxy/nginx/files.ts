import { RetryableError } from '../../../../base/errors.ts';
import { type Identity, readMark } from '../../../../base/ownership.ts';
import type { ProxyChange } from '../backend.ts';
import { type CertificateSource, certificateFor } from '../certificates.ts';
import { type ProxySpec, servedName } from '../desired.ts';
import { fileNameOf } from '../file-name.ts';
import type { Generation } from './generation.ts';
import type { FileChange } from './isolate.ts';
import type { Renderer } from './render.ts';
import { formatSiteFile, readNginxSiteFile } from './site-file.ts';

interface FileWriter {
  readonly renderer: Renderer;
  readonly certificates: CertificateSource;
  readonly identity: Identity;
  readonly current: Generation | null;
}

/**
 * The file for each change; `null`: nothing to do, because the file to delete doesn't exist or is foreign. Rejected if
 * a value is refused, if a certificate is missing, or if a foreign file has the name and the change doesn't adopt it.
 */
export function writeFiles(
  changes: readonly ProxyChange[],
  writer: FileWriter,
): Promise<PromiseSettledResult<FileChange | null>[]> {
  return Promise.allSettled(changes.map((change) => writeOne(change, writer)));
}

async function writeOne(change: ProxyChange, writer: FileWriter): Promise<FileChange | null> {
  const { key, mark, adopt, spec } = change;
  const name = fileNameOf(key, '.conf');
  const existing = writer.current?.files.get(name);
  const owner =
    existing === undefined ? null : readMark(writer.identity, readNginxSiteFile(existing).mark).owner;
  if (spec === null) return owner?.kind === 'ours' ? { name, text: null } : null;
  if (owner?.kind === 'foreign' && !adopt) {
    throw new RetryableError(`${key} was taken by ${owner.by} since it was observed`);
  }
  return { name, text: await siteText(mark, spec, writer) };
}

async function siteText(mark: string, spec: ProxySpec, writer: FileWriter): Promise<string> {
  const { renderer } = writer;
  const certificates = await Promise.all(
    spec.vhosts.map((vhost) => certificateFor(writer.certificates, servedName(vhost))),
  );
  const paths = certificates.map(({ files }) => files);
  return formatSiteFile(mark, { form: renderer.form, certificates }, renderer.vhosts(spec, paths));
}
