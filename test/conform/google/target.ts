/** Google's scripts: the real ones, or the stand-ins of `sites/local/demo/vendor`. */
export interface GoogleTarget {
  /** `https://www.googletagmanager.com`. */
  readonly tagManager: URL;
  /** The host of the tag gateway for a web container: `https://<id>.fps.goog`. Unset: there is none to try. */
  readonly gateway?: (id: string) => URL;
  /** A published web container, such as `GTM-ABC1234`. */
  readonly containerId: string;
}
