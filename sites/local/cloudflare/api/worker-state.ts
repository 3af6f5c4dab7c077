/** A deployed worker, as the API describes it. */
export interface WorkerState {
  readonly compatibilityDate?: string;
  /** The API never returns the value of a secret. */
  readonly bindings: readonly {
    readonly name: string;
    readonly type: string;
    readonly [member: string]: unknown;
  }[];
  /** The settings that hold for all its versions. */
  readonly settings: {
    readonly logpush?: boolean | null;
    readonly observability?: object | null;
    readonly tail_consumers?: readonly { readonly service: string }[] | null;
  };
}
