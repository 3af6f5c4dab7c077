import { RetryableError, TerminalError } from '../../../../base/errors.ts';
import type { ObjectAddress } from '../../client/kinds.ts';

/** A Secret of others has the name of one of ours. */
export function foreignSecret({ namespace, name }: ObjectAddress): Error {
  return new TerminalError(
    `Kubernetes: a Secret ${name} of others is there, which can’t be read or taken over. Remove it: kubectl --namespace ${namespace} delete secret ${name}`,
  );
}

/** A ConfigMap of others has the name of the record of one of our Secrets. */
export function foreignRecord({ namespace, name }: ObjectAddress, cause?: unknown): Error {
  return new TerminalError(
    `Kubernetes: a ConfigMap ${name} of others is there. Remove it: kubectl --namespace ${namespace} delete configmap ${name}`,
    { cause },
  );
}

/** The record of a Secret is deleted, but nothing says that the Secret is gone. `isThere`: `null` if that isn’t known. */
export function unconfirmedRemoval({ name }: ObjectAddress, isThere: true | null): Error {
  const found =
    isThere === null
      ? 'may still be there: the API server doesn’t say whether it is'
      : 'is still there, although its owner is deleted: check that the cluster’s garbage collector runs, and that others have not made the Secret again';
  return new RetryableError(`Kubernetes: Secret ${name} ${found}`);
}
