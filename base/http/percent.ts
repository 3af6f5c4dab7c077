/**
 * The text with its percent-encoded octets decoded. Unlike with `decodeURIComponent`, what is no percent-encoded UTF-8
 * stays as it is, as in git: a password may have a bare `%`.
 */
export function percentDecoded(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (encoded) => {
    try {
      return decodeURIComponent(encoded);
    } catch {
      return encoded;
    }
  });
}
