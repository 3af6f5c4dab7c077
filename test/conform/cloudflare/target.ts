/** Cloudflare's API, with a zone that a behaviour may change. */
export interface CloudflareTarget {
  /** The API's base URL, such as `https://api.cloudflare.com/client/v4`. */
  readonly url: string;
  readonly token: string;
  readonly zone: { readonly id: string; readonly name: string };
  readonly account: string;
  /** Every name that a behaviour uses must contain it. */
  readonly prefix: string;
}
