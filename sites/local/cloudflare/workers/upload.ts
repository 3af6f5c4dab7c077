import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ApiError } from '../api/envelope.ts';
import { type Binding, type UploadMetadata, uploadMetadata } from '../api/worker-schemas.ts';

export interface Upload {
  readonly metadata: UploadMetadata;
  readonly etag: string;
  readonly size: number;
}

/** Reads a multipart form from the octets of a body. */
export async function formOf(body: unknown, contentType: string): Promise<FormData> {
  if (!(body instanceof Buffer) || !contentType.startsWith('multipart/form-data')) {
    throw new ApiError('invalidUpload', 'Failed to parse Worker upload. Send multipart/form-data.');
  }
  try {
    return await new Response(new Uint8Array(body), { headers: { 'content-type': contentType } }).formData();
  } catch (cause) {
    throw new ApiError('invalidUpload', `Failed to parse Worker upload: ${String(cause)}`);
  }
}

/** The JSON of one part, which may have been sent as a file. */
export async function jsonPart<T>(form: FormData, name: string, schema: z.ZodType<T>): Promise<T> {
  const part = form.get(name);
  if (part === null) throw new ApiError('invalidUpload', `The form has no part ${name}.`);
  const text = typeof part === 'string' ? part : await part.text();
  const parsed = z
    .string()
    .transform((json, context): unknown => {
      try {
        return JSON.parse(json);
      } catch {
        context.addIssue('it is not JSON');
        return z.NEVER;
      }
    })
    .pipe(schema)
    .safeParse(text);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new ApiError('invalidUpload', `${name}: ${issue?.path.join('.')} ${issue?.message}`);
}

/** Reads the upload of a worker: its metadata, and the other parts, which are its modules. */
export async function readUpload(body: unknown, contentType: string): Promise<Upload> {
  const form = await formOf(body, contentType);
  const metadata = await jsonPart(form, 'metadata', uploadMetadata);
  const hash = createHash('sha256');
  let size = 0;
  const modules = new Set<string>();
  for (const [name, part] of form) {
    if (name === 'metadata') continue;
    const content = typeof part === 'string' ? Buffer.from(part) : Buffer.from(await part.arrayBuffer());
    // A module is found by the name of its file, else by that of its part.
    modules.add(name).add(typeof part === 'string' ? name : part.name);
    hash.update(`${name}\0`).update(content);
    size += content.length;
  }
  const main = metadata.main_module ?? metadata.body_part;
  if (main === undefined || !modules.has(main)) {
    throw new ApiError('invalidScript', `No such module: ${main ?? 'main_module is not set'}`);
  }
  return { metadata, etag: hash.digest('hex'), size };
}

/**
 * The bindings of a new version: those that it names, those that it inherits by name, and those of the types that it
 * keeps.
 */
export function nextBindings(
  wanted: readonly Binding[],
  current: readonly Binding[],
  kept: readonly string[] = [],
): Binding[] {
  const byName = new Map(current.map((binding) => [binding.name, binding]));
  const named = wanted.map((binding) => {
    if (binding.type !== 'inherit') return binding;
    const inherited = byName.get(binding.name);
    if (inherited === undefined) throw new ApiError('invalidScript', `Nothing to inherit: ${binding.name}`);
    return inherited;
  });
  const names = new Set(named.map(({ name }) => name));
  return [...named, ...current.filter(({ name, type }) => kept.includes(type) && !names.has(name))];
}

/** Bindings as answers show them: without the values of secrets. */
export function shownBindings(bindings: readonly Binding[]): Binding[] {
  return bindings.map(({ name, type, ...rest }) =>
    type === 'secret_text' ? { name, type } : { name, type, ...rest },
  );
}
