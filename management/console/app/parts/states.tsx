import type { ComponentChildren } from 'preact';
import { ApiProblem } from '../../../../base/client/index.ts';
import type { Query } from '../data/query.ts';
import { fieldName } from '../text/format.ts';
import { Ago } from './marks.tsx';

/** Placeholders for data that are still being read, so that nothing moves when the data arrive. */
export function Skeleton({ rows = 3, label = 'Loading' }: { rows?: number; label?: string }) {
  return (
    <div class="skeleton" role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

/** Says that nothing is here yet, and what to do next. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="strong">{title}</p>
      {children}
    </div>
  );
}

/** What went wrong, in words, with the request's id for a question to the operator. */
export function Failure({
  error,
  retry,
  isBusy = false,
}: {
  error: unknown;
  retry?: () => void;
  isBusy?: boolean;
}) {
  const problem = problemOf(error);
  const title = titleOf(error);
  const detail =
    problem === null
      ? 'The API can’t be reached. Check the connection, then try again.'
      : (problem.problem?.detail ?? `The API answered ${problem.status}.`);
  const errors = problem?.errors ?? [];
  // The errors say it, each with the field's label.
  const isRepeated =
    errors.length > 0 &&
    (problem?.problem?.detail === undefined ||
      errors.some(({ path, message }) => detail === `${path} ${message}`));
  return (
    <div class="notice bad" role="alert">
      <p class="strong">{title}</p>
      {detail !== title && !isRepeated && <p>{detail}</p>}
      {errors.length > 0 && (
        <ul>
          {errors.map(({ path, message }) => (
            <li key={path}>
              {path !== '' && <span class="strong">{fieldName(path)}</span>} {message}
            </li>
          ))}
        </ul>
      )}
      {problem?.requestId && (
        <p class="dim">
          <RequestId problem={problem} />
        </p>
      )}
      {retry && (
        <button type="button" disabled={isBusy} onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** What the API says of the field with this path; `undefined`: nothing. */
export function errorOf(error: unknown, path: string): string | undefined {
  return problemOf(error)?.errors.find((one) => one.path === path)?.message;
}

function problemOf(error: unknown): ApiProblem | null {
  return error instanceof ApiProblem ? error : null;
}

function titleOf(error: unknown): string {
  const problem = problemOf(error);
  if (problem?.problem?.code === 'invalid_request' && problem.errors.length > 0) {
    return 'Not everything is right yet';
  }
  if (problem?.status === 403) return 'Your role doesn’t allow this';
  return problem?.problem?.title ?? 'This didn’t work';
}

function RequestId({ problem }: { problem: ApiProblem }) {
  return (
    <>
      Request <code>{problem.requestId}</code>
    </>
  );
}

/** A query's data in all its states: loading, failed, known but old, known. */
export function Known<Data>({
  query,
  rows,
  children,
}: {
  query: Query<Data>;
  rows?: number;
  children: (data: Data) => ComponentChildren;
}) {
  const { data, error, isLoading, at, reload } = query;
  if (data === undefined) {
    if (error === null) return <Skeleton {...(rows === undefined ? {} : { rows })} />;
    return <Failure error={error} retry={() => void reload()} isBusy={isLoading} />;
  }
  const problem = problemOf(error);
  return (
    <>
      {error !== null && (
        <p class="notice warn" role="status">
          Last read <Ago at={at} />. The newest attempt failed:{' '}
          {problem === null ? 'the API doesn’t answer at the moment' : titleOf(error)}.{' '}
          {problem?.requestId && <RequestId problem={problem} />}{' '}
          <button type="button" class="quiet" disabled={isLoading} onClick={() => void reload()}>
            Try again
          </button>
        </p>
      )}
      {children(data)}
    </>
  );
}
