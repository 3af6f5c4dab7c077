/** A tag server that listens. */
export interface StartedRole {
  readonly listens: true;
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** A tag server that ended before it listened. */
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
   * never restarts it. Resolves once it listens or has ended.
   */
  readonly startWith: (env: Readonly<Record<string, string>>) => Promise<StartedRole | EndedRole>;
}

/** What a processing server handed to its preview server. */
export interface HandedOver {
  readonly method: string;
  readonly path: string;
  readonly host: string | undefined;
  readonly forwarded: string | undefined;
}

/** A server in the processing role, with a preview server that it reaches by TLS under a name. */
export interface ServerPair {
  /** The base URL of the server in the processing role. */
  readonly tagging: string;
  /** The host of its PREVIEW_SERVER_URL, with the port. */
  readonly previewHost: string;
  readonly handedOver: () => readonly HandedOver[];
  /**
   * Throws `NotTried` if no connection arrives at the preview server's address, neither from this server nor from one
   * that is given the address instead of the name.
   */
  readonly assertReachable: () => Promise<void>;
  /** How many connections have arrived at the preview server. */
  readonly connections: () => number;
  readonly stop: () => Promise<void>;
}

/** A tag server in containers, which have a hosts file of their own. */
export interface ContainerTarget extends TagServerTarget {
  /**
   * Starts a processing server that hands requests to `preview`. Only the hosts file of its container has the preview
   * server's name. A private CA has signed that name's certificate; if the server `trusts` it, NODE_EXTRA_CA_CERTS
   * names the CA.
   */
  readonly startPair: (options: { readonly trusts: boolean }) => Promise<ServerPair>;
}
