/** A strong entity tag: the first half of the SHA-256, enough against accidental collisions. */
export async function etagOf(data: ArrayBuffer | Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', data);
  return `"${new Uint8Array(digest, 0, 16).toHex()}"`;
}
