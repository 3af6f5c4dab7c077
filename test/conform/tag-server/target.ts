/** A role that listens. */
export interface StartedRole {
  readonly listens: true;
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** A role that ended before it listened. */
export interface EndedRole {
  readonly listens: false;
  readonly code: number | null;
  /** All that it wrote. */
  readonly output: string;
}

/** A tag server that is tried: processes or containers of one image. */
export interface TagServerTarget {
  /** The content of the CONTAINER_CONFIG that both servers run with. Google accepts it. */
  readonly config: { readonly id: string; readonly env: string; readonly auth: string };
  /** The base URL of a server in the processing role, without PREVIEW_SERVER_URL. */
  readonly tagging: string;
  /** The base URL of a server in the preview role. */
  readonly preview: string;
  /**
   * Starts a new server with exactly these variables of the image (beside PORT and HOST, which are the target's), and
   * without a restart. Resolves once it listens or has ended.
   */
  readonly startWith: (env: Readonly<Record<string, string>>) => Promise<StartedRole | EndedRole>;
}
